// The requests of a batch go through the same passes as a server's: tokens of many texts in one, prompts' beginnings that
// are equal computed once. An answer is the one that its request has alone.
#include "tools/verbs/run_batch.h"

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <vector>

#include "fovea/host/generation.h"
#include "host/base/error.h"
#include "host/base/output_file.h"
#include "host/base/text_file.h"
#include "host/base/words.h"
#include "serve/jobs/worker.h"
#include "tools/generation/batch_output.h"
#include "tools/terminal/progress.h"

namespace fovea {
namespace {

// Answers wait for those before them. So many requests beyond the oldest unanswered one are begun at most: what is computed
// again after a kill, and the memory of texts that wait.
constexpr std::size_t kAhead = 1024;
constexpr std::uint32_t kRows =
    512;  // of a pass, and of those for prompts as many as there are: nobody waits for a token
constexpr std::chrono::seconds kBetweenNotes{30};  // where standard error is no terminal

/// What a request comes to.
struct BatchAnswer {
    std::string text;
    serve::Event last;
    std::vector<Token> tokens;  ///< of an answer to ids
    bool is_tokens = false;
    Json id;
    std::uint32_t hash = 0;

    [[nodiscard]] std::string line(std::size_t index) const {
        Json json = {{"index", index}};
        if (!id.is_null()) json["id"] = id;
        json["request"] = hash_text(hash);
        json["text"] = text;
        if (is_tokens) json["tokens"] = tokens;
        json["finish"] = host::name_of(last.finish);
        json["n_prompt_tokens"] = last.n_prompt;
        json["n_tokens"] = last.n_new;
        return json_text(json);
    }
};

/// What all requests need, found before any memory is taken.
struct Needs {
    std::vector<std::uint32_t> hashes;
    std::uint32_t context = 1;  ///< positions of the longest, and of the n_sequences longest together:
    std::uint64_t n_positions = 0;
    std::uint32_t max_source = 0;  ///< the same of what texts are written from
    std::uint64_t n_source_positions = 0;
};

/// The longest, and the positions in whole pages of the n longest.
void add_up(std::vector<std::uint32_t>& lengths, std::uint32_t n, std::uint32_t& longest, std::uint64_t& n_positions) {
    constexpr std::uint32_t kPage = PoolLimits{}.page_len;
    std::sort(lengths.begin(), lengths.end(), std::greater<>());
    longest = lengths.front();
    for (std::size_t i = 0; i < std::min<std::size_t>(n, lengths.size()); ++i)
        n_positions += std::uint64_t{(lengths[i] + kPage - 1) / kPage} * kPage;
}

/// All at once, or four of the longest: then texts take turns for the pages.
std::uint32_t bounded(std::uint64_t n_positions, std::uint32_t longest) {
    constexpr std::uint64_t kEnough = 1u << 16;
    return static_cast<std::uint32_t>(std::min(n_positions, std::max(std::uint64_t{4} * longest, kEnough)));
}

Needs measure(const serve::BatchLines& lines, serve::BatchReader& reader, std::uint32_t n_sequences) {
    Needs needs;
    std::vector<std::uint32_t> lengths, sources;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const serve::BatchRequest request = reader.read(i);
        (void)reader.form(i, request);
        needs.hashes.push_back(request.hash);
        const auto n_read = static_cast<std::uint32_t>(request.prompt.size());
        const auto n_prompt = request.rules ? static_cast<std::uint32_t>(request.rules->prompt().size()) : n_read;
        lengths.push_back(n_prompt + std::max(request.n_new, 1u));
        if (request.rules) sources.push_back(n_read);
    }
    add_up(lengths, n_sequences, needs.context, needs.n_positions);
    if (!sources.empty()) add_up(sources, n_sequences, needs.max_source, needs.n_source_positions);
    return needs;
}

/// How far it is, on standard error.
class BatchProgress {
public:
    BatchProgress(std::size_t n_all, std::size_t n_kept, bool quiet) : n_all_(n_all), n_kept_(n_kept), quiet_(quiet) {
        if (!quiet) line_ = progress_line("answers");
    }
    void show(std::size_t n_done, std::uint64_t n_tokens) {
        if (line_) line_(n_done, n_all_);
        if (line_ || quiet_ || Clock::now() < next_) return;
        next_ = Clock::now() + kBetweenNotes;
        std::fprintf(stderr, "%s of %s answers, %.0f tokens per second\n", with_separators(n_done).c_str(),
                     with_separators(n_all_).c_str(), static_cast<double>(n_tokens) / seconds());
    }
    void end() { line_ = {}; }
    [[nodiscard]] double seconds() const {
        return std::max(std::chrono::duration<double>(Clock::now() - started_).count(), 1e-9);
    }
    [[nodiscard]] std::size_t n_kept() const { return n_kept_; }

private:
    using Clock = std::chrono::steady_clock;
    std::size_t n_all_, n_kept_;
    bool quiet_;
    Progress line_;
    Clock::time_point started_ = Clock::now(), next_ = started_ + kBetweenNotes;
};

class BatchRun {
public:
    BatchRun(const serve::BatchLines& lines, serve::BatchReader& reader, serve::Worker& worker, BatchOutput& output)
        : lines_(lines),
          reader_(reader),
          worker_(worker),
          output_(output),
          n_begun_(output.n_kept()),
          n_written_(output.n_kept()) {}

    void run(std::uint32_t n_sequences, BatchProgress& progress) {
        while (n_written_ < lines_.size()) {
            while (n_begun_ < std::min(lines_.size(), n_written_ + kAhead) && worker_.queue.size() < n_sequences)
                begin(n_begun_++);
            const bool computed = worker_.turn();
            const std::size_t n_before = n_written_;
            for (auto first = done_.begin(); first != done_.end() && first->first == n_written_;
                 first = done_.begin()) {
                write(first->second);
                done_.erase(first);
            }
            if (!computed && n_written_ == n_before) throw host::Error("batch: expected a pass to compute, got none");
            progress.show(n_written_, n_tokens_);
        }
    }
    [[nodiscard]] std::uint64_t n_tokens() const { return n_tokens_; }
    [[nodiscard]] std::uint64_t n_prompt_tokens() const { return n_prompt_tokens_; }

private:
    void begin(std::size_t i) {
        serve::BatchRequest request = reader_.read(i);
        auto job = std::make_shared<serve::Job>();
        if (request.rules)
            job->write_from({std::move(request.prompt)}, request.rules);
        else
            job->prompts = {std::move(request.prompt)};
        job->n_new = request.n_new;
        if (request.is_tokens) job->n_likeliest = 0;  // events then have ids
        job->sampler = request.request.sampler;
        job->penalized = request.request.penalized;
        job->stop = request.request.stop;
        if (const ModelChat* chat = reader_.chat(); chat && request.request.is_chat) {
            job->stop.insert(job->stop.end(), chat->stops().begin(), chat->stops().end());
            job->end_tokens = chat->end_tokens();
        }
        job->constrain = reader_.form(i, request);
        job->arrived = serve::Clock::now();
        job->deadline = serve::Clock::time_point::max();
        const auto answer = std::make_shared<BatchAnswer>();
        answer->id = std::move(request.id);
        answer->hash = request.hash;
        answer->is_tokens = request.is_tokens;
        job->deliver = [this, i, answer](std::vector<serve::Event> events) {
            for (serve::Event& event : events) {
                answer->text += event.text;
                for (const serve::ChosenToken& token : event.tokens) answer->tokens.push_back(token.id);
                if (!event.ended) continue;
                answer->last = std::move(event);
                done_.emplace(i, std::move(*answer));
            }
        };
        (void)worker_.queue.push(std::move(job));  // has room for as many as run wants to wait
    }

    void write(const BatchAnswer& answer) {
        if (answer.last.failure.status)
            throw host::Error(lines_.place(n_written_) + ": " + answer.last.failure.message);
        output_.write(answer.line(n_written_++));
        n_tokens_ += answer.last.n_new;
        n_prompt_tokens_ += answer.last.n_prompt;
    }

    const serve::BatchLines& lines_;
    serve::BatchReader& reader_;
    serve::Worker& worker_;
    BatchOutput& output_;
    std::size_t n_begun_, n_written_;
    std::map<std::size_t, BatchAnswer> done_;  // that wait for those before them
    std::uint64_t n_tokens_ = 0, n_prompt_tokens_ = 0;
};

/// The form that --json-schema, --grammar or --regex gives every request that has none.
void read_default_form(const FormOptions& form, serve::Request& request) {
    if (!form.wanted()) return;
    (void)read_form(form);  // refused here, by the file's name
    request.compact = form.compact;
    request.form = form.has_regex               ? serve::Form::regex
                   : !form.grammar_path.empty() ? serve::Form::grammar
                                                : serve::Form::schema;
    if (form.has_regex)
        request.grammar = form.regex;
    else if (!form.grammar_path.empty())
        request.grammar = read_text_file(form.grammar_path);
    else
        request.schema = Json::parse(read_text_file(form.schema_path));
}

void report(const BatchRun& batch, const BatchProgress& progress, const BatchOptions& options,
            const CommonOptions& common, std::size_t n_requests, std::uint64_t arena_bytes,
            const host::Opened& opened) {
    const double seconds = progress.seconds();
    const char* isa = common.isa.empty() ? isa_names().front() : common.isa.c_str();
    if (common.json) {
        const Json object = {{"n_requests", n_requests},
                             {"n_kept", progress.n_kept()},
                             {"n_prompt_tokens", batch.n_prompt_tokens()},
                             {"n_tokens", batch.n_tokens()},
                             {"seconds", seconds},
                             {"arena_bytes", arena_bytes},
                             {"file_bytes", opened.model.bytes().size()},
                             {"isa", isa},
                             {"n_threads", common.n_threads}};
        std::printf("%s\n", object.dump().c_str());
        flush_output();
    } else if (!options.quiet) {
        std::fprintf(stderr,
                     "%s answers, %s of them there already; %.0f tokens per second (%s new, %s of prompts), %s arena "
                     "bytes, %s, %u %s\n",
                     with_separators(n_requests).c_str(), with_separators(progress.n_kept()).c_str(),
                     static_cast<double>(batch.n_tokens()) / seconds, with_separators(batch.n_tokens()).c_str(),
                     with_separators(batch.n_prompt_tokens()).c_str(), with_separators(arena_bytes).c_str(), isa,
                     common.n_threads, common.n_threads == 1 ? "thread" : "threads");
    }
}

}  // namespace

void run_batch(const BatchOptions& given, const CommonOptions& common, const host::Opened& opened) {
    BatchOptions options = given;
    read_default_form(options.form, options.defaults.form);
    const Config& config = opened.model.config();
    const std::uint32_t most =
        opened.kind() == host::Kind::translation ? config.encoder.max_positions : config.decoder.max_positions;
    const serve::BatchLines lines(options.input);
    serve::BatchReader reader(lines, opened, options.defaults, options.kv_type,
                              options.context ? options.context : most);
    const auto n_sequences = static_cast<std::uint32_t>(std::min<std::size_t>(options.n_sequences, lines.size()));
    const Needs needs = measure(lines, reader, n_sequences);
    serve::ModelMetrics metrics;
    const serve::WorkerOptions settings{.n_threads = common.n_threads,
                                        .isa = common.isa_or_best(),
                                        .context = needs.context,
                                        .n_sequences = n_sequences,
                                        .n_positions = bounded(needs.n_positions, needs.context),
                                        .max_source = needs.max_source,
                                        .n_source_positions = bounded(needs.n_source_positions, needs.max_source),
                                        .max_batch = kRows,
                                        .n_beside = kRows,
                                        .queue_capacity = options.n_sequences,
                                        .kv_type = options.kv_type};
    const std::unique_ptr<serve::Worker> worker = serve::make_text_worker(opened, settings, metrics);
    const std::uint64_t arena_bytes = worker->memory_bytes() + reader.memory_bytes();
    BatchOutput output(options.output, needs.hashes);
    if (!options.quiet && !common.json)
        std::fprintf(stderr, "%s requests, %u at a time, of at most %s positions: %s bytes\n",
                     with_separators(lines.size()).c_str(), n_sequences, with_separators(needs.context).c_str(),
                     with_separators(arena_bytes).c_str());
    worker->begin();
    BatchProgress progress(lines.size(), output.n_kept(), options.quiet);
    BatchRun batch(lines, reader, *worker, output);
    batch.run(n_sequences, progress);
    progress.end();
    report(batch, progress, options, common, lines.size(), arena_bytes, opened);
}

}  // namespace fovea
