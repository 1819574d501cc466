// The requests of a batch go through the same passes as a server's: tokens of many texts in one, prompts' beginnings that
// are equal computed once. An answer is the one that its request has alone.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <fstream>
#include <map>

#include "host/base/clock.h"
#include "host/base/output_file.h"
#include "serve/api/batch_requests.h"
#include "serve/jobs/worker.h"
#include "tools/options/ranks.h"
#include "tools/terminal/progress.h"
#include "tools/verbs/run_options.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

// Answers wait for those before them. So many requests beyond the oldest unanswered one are begun at most: what is computed
// again after a kill, and the memory of texts that wait.
constexpr std::size_t kAhead = 1024;
constexpr std::uint32_t kRows =
    512;  // of a pass, and of those for prompts as many as there are: nobody waits for a token
constexpr double kBetweenNotes = 30;  // seconds, where standard error is no terminal

/// A request's hash as an answer has it.
std::string hash_text(std::uint32_t hash) {
    char text[9];
    std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(hash));
    return text;
}

/// Whether a line is the answer to request `i`.
bool is_answer(const std::string& line, std::size_t i, std::uint32_t hash) {
    const Json answer = read_json(line);
    return answer.is_object() && answer.value("index", Json()) == i &&
           answer.value("request", Json()) == hash_text(hash);
}

/// Whether a line that ends too soon can be the beginning of answer `i`, and not of some other file.
bool begins_answer(std::string_view line, std::size_t i) {
    const std::string begin = "{\"index\":" + std::to_string(i) + ",";
    return line.substr(0, begin.size()) == std::string_view(begin).substr(0, line.size());
}

/// Answers: a line each, in the order of the requests, so that a file that was begun can be gone on with.
class BatchOutput {
public:
    /// Opens `path`, "-" or "" being standard output. The whole lines of a file stay, where each is the answer to the
    /// request of its place, which the hash says; what follows the last line break is dropped. Throws host::Error where the file
    /// holds anything else, leaving it as it was, or is being written by somebody.
    BatchOutput(const std::string& path, std::span<const std::uint32_t> hashes) : path_(path) {
        if (path.empty() || is_standard_output(path)) {
            path_ = "standard output";
            return;
        }
        fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (fd_ < 0 && errno != EISDIR) fd_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);  // a pipe, a device
        if (fd_ < 0) throw host::Error(path + ": cannot be written: " + system_error(errno));
        struct stat file {};
        const bool is_file = fstat(fd_, &file) == 0 && S_ISREG(file.st_mode);
        if (!is_file) return;
        try {
            if (flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
                throw host::Error(path + ": expected a file of its own, got one that another batch is writing");
            keep(hashes);
        } catch (...) {
            close(fd_);
            throw;
        }
    }
    ~BatchOutput() {
        if (fd_ != 1) close(fd_);
    }
    BatchOutput(const BatchOutput&) = delete;
    BatchOutput& operator=(const BatchOutput&) = delete;

    [[nodiscard]] std::size_t n_kept() const { return n_kept_; }
    /// A line without its break. Throws host::Error where it cannot be written.
    void write(std::string_view line) {
        std::string bytes(line);
        bytes += '\n';
        for (std::string_view rest = bytes; !rest.empty();) {
            const ssize_t n = ::write(fd_, rest.data(), rest.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) throw host::Error(path_ + ": cannot be written: " + system_error(errno));
            rest.remove_prefix(static_cast<std::size_t>(n));
        }
    }

private:
    void keep(std::span<const std::uint32_t> hashes) {
        std::ifstream file(path_, std::ios::binary);
        off_t n_bytes = 0;
        for (std::string line; std::getline(file, line); ++n_kept_) {
            const bool is_torn = file.eof();  // no line break: a process ended within it
            if (n_kept_ == hashes.size() && !is_torn)
                throw host::Error(path_ + ": answers: expected at most " + with_separators(hashes.size()) +
                                  ", one for each request, got more; another -o begins anew");
            if (is_torn ? !begins_answer(line, n_kept_) : !is_answer(line, n_kept_, hashes[n_kept_]))
                throw host::Error(
                    path_ + ": line " + std::to_string(n_kept_ + 1) + ": expected the answer to request " +
                    std::to_string(n_kept_) +
                    " of this batch, got something else (another model, other options or requests, another file); "
                    "another -o begins anew");
            if (is_torn) break;
            n_bytes += static_cast<off_t>(line.size()) + 1;
        }
        if (ftruncate(fd_, n_bytes) != 0) throw host::Error(path_ + ": cannot be written: " + system_error(errno));
    }

    std::string path_;
    int fd_ = 1;
    std::size_t n_kept_ = 0;
};

/// What a request comes to.
struct BatchAnswer {
    struct Part {
        std::string text = {};
        std::vector<Token> tokens = {};  ///< of an answer to ids
    };
    std::vector<Part> parts;  ///< one, unless a source was read in several
    serve::Event last;        ///< with the counts of all
    std::size_t n_ended = 0;
    bool is_tokens = false;
    Json id;
    std::uint32_t hash = 0;

    /// Whether the answer is whole.
    bool add(const serve::Event& event) {
        Part& part = parts[event.choice];
        part.text += event.text;
        for (const serve::ChosenToken& token : event.tokens) part.tokens.push_back(token.id);
        if (!event.ended) return false;
        if (last.finish == FinishReason::none || last.finish == FinishReason::end_token) last.finish = event.finish;
        last.n_prompt += event.n_prompt, last.n_new += event.n_new;
        last.failure = event.failure;
        return ++n_ended == parts.size() || event.failure.status;
    }
    /// With spaces between parts.
    [[nodiscard]] std::string text() const {
        std::string all;
        for (const Part& part : parts)
            all += (all.empty() || part.text.empty() || part.text.starts_with(' ') ? "" : " ") + part.text;
        return all;
    }
    [[nodiscard]] std::string line(std::size_t index) const {
        Json json{{"index", index}};
        if (!id.is_null()) json["id"] = id;
        json.update(Json{{"request", hash_text(hash)}, {"text", text()}});
        if (is_tokens) json["tokens"] = parts.front().tokens;
        if (parts.size() > 1) json["n_parts"] = parts.size();
        json.update(
            Json{{"finish", host::name_of(last.finish)}, {"n_prompt_tokens", last.n_prompt}, {"n_tokens", last.n_new}});
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
    std::uint32_t shortest = 0;  ///< positions of the shortest
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
        for (const std::vector<Token>& prompt : request.prompts) {
            const auto n_read = static_cast<std::uint32_t>(prompt.size());
            const auto n_prompt = request.rules ? static_cast<std::uint32_t>(request.rules->prompt().size()) : n_read;
            lengths.push_back(n_prompt + std::max(request.n_new, 1u));
            if (request.rules) sources.push_back(n_read);
        }
    }
    add_up(lengths, n_sequences, needs.context, needs.n_positions);
    needs.shortest = lengths.back();
    if (!sources.empty()) add_up(sources, n_sequences, needs.max_source, needs.n_source_positions);
    return needs;
}

/// Positions that each text has room for. They choose between two lists of rotary frequencies, so that no request may choose for
/// those beside it: `asked` does, or all need the same.
std::uint32_t room_of(const Stack& stack, const Needs& needs, std::uint32_t asked) {
    const std::uint32_t original = stack.rope_original_positions;
    if (!original) return needs.context;
    if (asked) return asked;
    if (needs.shortest <= original && needs.context > original)
        throw host::Error("--context: expected one, for requests need " + std::to_string(needs.shortest) + " to " +
                          std::to_string(needs.context) +
                          " positions and the model's rotary frequencies are others beyond " +
                          std::to_string(original) + ", got none");
    return needs.context;
}

/// How far it is, on standard error.
class BatchProgress {
public:
    BatchProgress(std::size_t n_all, bool quiet) : n_all_(n_all), quiet_(quiet) {
        if (!quiet) line_ = progress_line("answers");
    }
    void show(std::size_t n_done, std::uint64_t n_tokens) {
        if (line_) line_(n_done, n_all_);
        if (line_ || quiet_ || seconds() < next_) return;
        next_ = seconds() + kBetweenNotes;
        std::fprintf(stderr, "%s of %s answers, %.0f tokens per second\n", with_separators(n_done).c_str(),
                     with_separators(n_all_).c_str(), static_cast<double>(n_tokens) / seconds());
    }
    void end() { line_ = {}; }
    [[nodiscard]] double seconds() const { return std::max(host::seconds_now() - started_, 1e-9); }

private:
    std::size_t n_all_;
    bool quiet_;
    Progress line_;
    double started_ = host::seconds_now(), next_ = kBetweenNotes;
};

struct BatchRun {
    const serve::BatchLines& lines;
    serve::BatchReader& reader;
    serve::Worker& worker;
    BatchOutput& output;
    std::size_t n_begun = output.n_kept(), n_written = n_begun;
    std::map<std::size_t, BatchAnswer> done = {};  // that wait for those before them
    std::uint64_t n_tokens = 0, n_prompt_tokens = 0, n_split = 0;

    void run(std::uint32_t n_sequences, BatchProgress& progress) {
        while (n_written < lines.size()) {
            while (n_begun < std::min(lines.size(), n_written + kAhead) && worker.queue.size() < n_sequences)
                begin(n_begun++);
            const bool computed = worker.turn();
            const std::size_t n_before = n_written;
            for (auto first = done.begin(); first != done.end() && first->first == n_written; first = done.begin()) {
                write(first->second);
                done.erase(first);
            }
            if (!computed && n_written == n_before) throw host::Error("batch: expected a pass to compute, got none");
            progress.show(n_written, n_tokens);
        }
    }

    void begin(std::size_t i) {
        serve::BatchRequest request = reader.read(i);
        auto job = std::make_shared<serve::Job>();
        if (request.rules)
            job->write_from(std::move(request.prompts), request.rules);
        else
            job->prompts = std::move(request.prompts);
        job->n_new = request.n_new;
        if (request.is_tokens) job->n_likeliest = 0;  // events then have ids
        serve::set_choices(request.request, *job);
        job->token_rules = request.token_rules;
        if (const ModelChat* chat = reader.chat(); chat && request.request.is_chat) {
            job->stop.insert(job->stop.end(), chat->stops().begin(), chat->stops().end());
            job->end_tokens.insert(job->end_tokens.end(), chat->end_tokens().begin(), chat->end_tokens().end());
        }
        job->constrain = reader.form(i, request);
        job->arrived = serve::Clock::now();
        job->deadline = serve::Clock::time_point::max();
        const auto answer = std::make_shared<BatchAnswer>();
        answer->parts.resize(job->n_choices());
        answer->id = std::move(request.id);
        answer->hash = request.hash;
        answer->is_tokens = request.is_tokens;
        job->deliver = [this, i, answer](std::vector<serve::Event> events) {
            for (serve::Event& event : events)
                if (answer->add(event)) done.emplace(i, std::move(*answer));
        };
        (void)worker.queue.push(std::move(job));  // has room for as many as run wants to wait
    }

    void write(const BatchAnswer& answer) {
        if (answer.last.failure.status) throw host::Error(lines.place(n_written) + ": " + answer.last.failure.message);
        if (answer.parts.size() > 1) ++n_split;
        output.write(answer.line(n_written++));
        n_tokens += answer.last.n_new;
        n_prompt_tokens += answer.last.n_prompt;
    }
};

/// The form that --json-schema, --grammar or --regex gives every request that has none.
void read_default_form(const FormOptions& form, serve::Request& request) {
    if (!form.wanted()) return;
    const std::string text = form_text(form);
    (void)read_form(form, text);  // refused here, by the file's name
    request.compact = form.compact;
    if (form.regex) {
        request.form = serve::Form::regex;
        request.grammar = text;
    } else if (!form.grammar_path.empty()) {
        request.form = serve::Form::grammar;
        request.grammar = text;
    } else {
        request.form = serve::Form::schema;
        request.schema = read_json(text);
    }
}

void report(const BatchRun& batch, double seconds, const RunOptions& options, std::size_t n_requests,
            std::size_t n_kept, std::uint64_t arena_bytes, const host::Opened& opened) {
    const CommonOptions& common = options.common;
    const char* isa = common.isa.empty() ? isa_names().front() : common.isa.c_str();
    if (common.json)
        print_line({{"n_requests", n_requests},
                    {"n_kept", n_kept},
                    {"n_prompt_tokens", batch.n_prompt_tokens},
                    {"n_tokens", batch.n_tokens},
                    {"seconds", seconds},
                    {"arena_bytes", arena_bytes},
                    {"file_bytes", opened.model.bytes().size()},
                    {"isa", isa},
                    {"n_threads", common.n_threads}});
    else if (!options.quiet)
        std::fprintf(stderr,
                     "%s answers, %s of them there already; %.0f tokens per second (%s new, %s of prompts), %s arena "
                     "bytes, %s, %s\n",
                     with_separators(n_requests).c_str(), with_separators(n_kept).c_str(),
                     static_cast<double>(batch.n_tokens) / seconds, with_separators(batch.n_tokens).c_str(),
                     with_separators(batch.n_prompt_tokens).c_str(), with_separators(arena_bytes).c_str(), isa,
                     counted(common.n_threads, "thread").c_str());
}

}  // namespace

void run_batch(const RunOptions& options, const host::Opened& opened) {
    serve::BatchDefaults defaults{options.sampling, options.stop, options.n_new.value_or(kAny), options.languages, {}};
    read_default_form(options.form, defaults.form);
    const Config& config = opened.model.config();
    const std::uint32_t most =
        opened.kind() == host::Kind::translation ? config.encoder.max_positions : config.decoder.max_positions;
    const serve::BatchLines lines(options.batch);
    serve::BatchReader reader(lines, opened, defaults, options.common.kv_type,
                              options.context ? options.context : most);
    const auto n_sequences = static_cast<std::uint32_t>(std::min<std::size_t>(options.n_sequences, lines.size()));
    const Needs needs = measure(lines, reader, n_sequences);
    const std::uint32_t context = room_of(config.decoder, needs, options.context);
    serve::ModelMetrics metrics;
    const serve::WorkerOptions settings{.n_threads = options.common.n_threads,
                                        .isa = options.common.isa_or_best(),
                                        .context = context,
                                        .n_sequences = n_sequences,
                                        .n_positions = bounded(needs.n_positions, context),
                                        .max_source = needs.max_source,
                                        .n_source_positions = bounded(needs.n_source_positions, needs.max_source),
                                        .max_batch = kRows,
                                        .n_beside = kRows,
                                        .queue_capacity = options.n_sequences,
                                        .kv_type = options.common.kv_type};
    lead_ranks();
    const std::unique_ptr<serve::Worker> worker = serve::make_text_worker(opened, settings, metrics);
    worker->take_memory();
    if (const Ranks* ranks = joined_ranks(); ranks && ranks->rank) {
        worker->begin();
        return worker->follow(follow_first_rank);
    }
    const std::uint64_t arena_bytes = worker->memory_bytes() + reader.memory_bytes();
    BatchOutput output(options.output, needs.hashes);
    if (!options.quiet && !options.common.json)
        std::fprintf(stderr, "%s requests, %u at a time, of at most %s positions: %s bytes\n",
                     with_separators(lines.size()).c_str(), n_sequences, with_separators(needs.context).c_str(),
                     with_separators(arena_bytes).c_str());
    worker->begin();
    BatchProgress progress(lines.size(), options.quiet);
    BatchRun batch{lines, reader, *worker, output};
    batch.run(n_sequences, progress);
    progress.end();
    if (batch.n_split && !options.quiet)
        std::fprintf(stderr, "note: %s read in parts: the model reads at most %s tokens at once\n",
                     counted(batch.n_split, "source").c_str(), with_separators(most).c_str());
    report(batch, progress.seconds(), options, lines.size(), output.n_kept(), arena_bytes, opened);
}

}  // namespace fovea
