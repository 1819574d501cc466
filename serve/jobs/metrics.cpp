#include "serve/jobs/metrics.h"

#include <charconv>

namespace fovea::serve {
namespace {

std::string number(double value) {
    char text[32];  // the shortest that says it whole
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

void head(std::string& out, const char* name, const char* type, const char* help) {
    out += std::string("# HELP fovea_") + name + ' ' + help + "\n# TYPE fovea_" + name + ' ' + type + '\n';
}

void line(std::string& out, const char* name, const std::string& labels, std::uint64_t value) {
    out +=
        std::string("fovea_") + name + (labels.empty() ? "" : '{' + labels + '}') + ' ' + std::to_string(value) + '\n';
}

/// A label's value: names of models may hold anything.
std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\' || c == '"' || c == '\n') out += '\\';
        out += c == '\n' ? 'n' : c;
    }
    return out;
}

template<class Of>
struct Row {
    const char *name, *type, *help;
    const Counter Of::*value;
};
constexpr Row<Metrics> kServerRows[] = {
    {"cancelled_total", "counter", "Requests whose client hung up.", &Metrics::n_cancelled},
    {"connections", "gauge", "Open connections.", &Metrics::n_connections},
    {"body_bytes", "gauge", "Bytes of request bodies that are being read or answered.", &Metrics::n_body_bytes},
    {"upload_bytes", "gauge", "Bytes of uploaded files that are being read, or wait to be decoded.",
     &Metrics::n_upload_bytes},
};
constexpr Row<ModelMetrics> kRows[] = {
    {"prompt_tokens_total", "counter", "Tokens of prompts.", &ModelMetrics::n_prompt_tokens},
    {"shared_prompt_tokens_total", "counter", "Tokens of prompts that were computed before.",
     &ModelMetrics::n_shared_tokens},
    {"generated_tokens_total", "counter", "Tokens generated.", &ModelMetrics::n_new_tokens},
    {"proposed_tokens_total", "counter", "Tokens that a draft proposed.", &ModelMetrics::n_proposed},
    {"accepted_tokens_total", "counter", "Tokens that a draft proposed rightly.", &ModelMetrics::n_accepted},
    {"passes_total", "counter", "Forward passes.", &ModelMetrics::n_passes},
    {"rows_total", "counter", "Tokens computed in all passes.", &ModelMetrics::n_rows},
    {"rests_total", "counter", "Answers whose pages went to others, to be computed again.", &ModelMetrics::n_rests},
    {"pauses_total", "counter", "Answers that let another client's go on.", &ModelMetrics::n_pauses},
    {"requests_waiting", "gauge", "Requests in the queue.", &ModelMetrics::n_waiting},
    {"sequences_running", "gauge", "Sequences that are computed.", &ModelMetrics::n_running},
    {"pages", "gauge", "Pages of keys and values.", &ModelMetrics::n_pages},
    {"pages_free", "gauge", "Pages that hold nothing.", &ModelMetrics::n_free_pages},
    {"pages_kept", "gauge", "Pages kept for prompts that begin alike; freed when wanted.", &ModelMetrics::n_kept_pages},
};

}  // namespace

void Histogram::observe(double seconds) {
    int at = 0;
    while (at < kBoundCount && seconds > kBounds[at]) ++at;
    ++counts_[at];
    microseconds_ += static_cast<std::uint64_t>(seconds * 1e6);
}

double Histogram::mean() const {
    std::uint64_t n = 0;
    for (const Counter& count : counts_) n += count;
    return n ? static_cast<double>(microseconds_) / 1e6 / static_cast<double>(n) : 0;
}

void Histogram::write(std::string& out, const std::string& name, const std::string& labels) const {
    std::uint64_t n = 0;
    for (int i = 0; i <= kBoundCount; ++i) {
        n += counts_[i];
        const std::string bound = i < kBoundCount ? number(kBounds[i]) : "+Inf";
        out += name + "_bucket{" + labels + ",le=\"" + bound + "\"} " + std::to_string(n) + '\n';
    }
    out += name + "_sum{" + labels + "} " + number(static_cast<double>(microseconds_) / 1e6) + '\n';
    out += name + "_count{" + labels + "} " + std::to_string(n) + '\n';
}

void Metrics::count_answer(int status) {
    if (status >= 0 && status < kStatuses) ++answers_[status];
}

std::string Metrics::text() const {
    std::string out;
    head(out, "answers_total", "counter", "Requests answered, by HTTP status.");
    for (int status = 0; status < kStatuses; ++status)
        if (answers_[status]) line(out, "answers_total", "status=\"" + std::to_string(status) + '"', answers_[status]);
    for (const Row<Metrics>& row : kServerRows) {
        head(out, row.name, row.type, row.help);
        line(out, row.name, "", this->*row.value);
    }
    for (const Row<ModelMetrics>& row : kRows) {
        head(out, row.name, row.type, row.help);
        for (const auto& [name, model] : models)
            line(out, row.name, "model=\"" + escaped(name) + '"', model.*row.value);
    }
    const auto add = [&](const char* name, const char* help, const Histogram ModelMetrics::*histogram) {
        head(out, name, "histogram", help);
        for (const auto& [model, of] : models)
            (of.*histogram).write(out, std::string("fovea_") + name, "model=\"" + escaped(model) + '"');
    };
    add("first_token_seconds", "From a request's arrival to its first token.", &ModelMetrics::first_token);
    add("request_seconds", "From a request's arrival to its end.", &ModelMetrics::request);
    return out;
}

}  // namespace fovea::serve
