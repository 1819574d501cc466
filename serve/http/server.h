// `fovea serve`: models behind HTTP. One thread speaks HTTP and reads requests, one computes (fovea/workspace.h's threads
// beside it); jobs go one way and events the other.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "serve/api/answer.h"
#include "serve/api/prompt_reader.h"
#include "serve/http/http.h"
#include "serve/jobs/scheduler.h"
#include "serve/jobs/forms.h"

namespace fovea::serve {

struct ServerOptions {
    std::string host = "127.0.0.1";
    std::uint16_t port = 8080;  ///< 0: one that the system chooses
    WorkerOptions worker;
    HttpLimits http;
    std::vector<std::string> api_keys;  ///< empty: none is asked for
    std::vector<std::string> origins;   ///< whose pages may ask; "*": all
    std::chrono::seconds time{600};     ///< from a request's arrival to its end
    std::chrono::seconds drain_time{30};
};

class Server {
public:
    /// Takes all the memory of the engine. Throws host::Error. `models` must outlive it.
    Server(const std::vector<host::Opened>& models, ServerOptions options);
    ~Server();

    /// Listens, says where by `ready`, and serves until a signal. Throws host::Error.
    void run(const std::function<void(std::uint16_t port)>& ready);
    /// What is taken at the start, exactly: work, caches, generators, reading prompts.
    [[nodiscard]] std::uint64_t memory_bytes() const;
    /// What HTTP may take beside that, at most.
    [[nodiscard]] std::uint64_t http_bytes() const;

private:
    struct Call;
    void handle(HttpRequest request, const ExchangePtr& exchange, int refused);
    void route(Call& call);
    void route_get(Call& call);
    void submit(Call& call, Api api);
    void hear(Call& call, Api api);
    void show_attention(Call& call);
    void show(Call& call);
    void tokenize(Call& call);
    void detokenize(Call& call);
    void apply_template(Call& call);
    void submit(Call& call, Request& request, std::size_t model);
    [[nodiscard]] JobPtr make_job(const Call& call, Request& request, std::size_t model);
    void fill_speech_job(Request& request, std::size_t model, Job& job) const;
    void fill_text_job(const Call& call, const Request& request, std::size_t model, Job& job);
    [[nodiscard]] AnswerOptions answer_options(const Call& call, const Request& request, std::size_t model,
                                               const Job& job);
    [[nodiscard]] bool queue(Call& call, std::size_t model, const JobPtr& job);
    void check_allowed(Call& call);
    [[nodiscard]] BodyKind admits(const HttpRequest& headers);
    void refuse(Call& call, int status, const std::string& message, const std::string& param = {},
                const std::string& code = {});
    void answer(Call& call, Json body);
    [[nodiscard]] std::size_t find_model(const std::string& name, std::optional<Api> api) const;
    [[nodiscard]] Json model_list() const;
    [[nodiscard]] Json tag_list() const;
    [[nodiscard]] std::string retry_after(std::size_t model);

    const std::vector<host::Opened>& models_;
    const ServerOptions options_;
    Metrics metrics_;
    Scheduler scheduler_;
    std::vector<std::unique_ptr<PromptReader>> readers_;  // of each model
    std::vector<std::unique_ptr<Forms>> forms_;
    HttpServer http_;
    const std::int64_t started_;  // seconds since 1970
    std::uint64_t n_requests_ = 0;
};

/// The page at "/", and its bytes' type.
[[nodiscard]] std::string_view page() noexcept;

}  // namespace fovea::serve
