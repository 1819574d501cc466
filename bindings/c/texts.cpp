// Vectors and classes of texts, and what other heads find in them, for fovea_host.h.
#include "bindings/c/handles.h"

using namespace fovea;
using namespace fovea::host_c;

namespace {

host::TextOptions options_of(const fovea_host_text_options& given, std::size_t n_texts) {
    host::TextOptions options{.n_threads = given.n_threads, .isa = given.isa};
    if (given.prompt) options.prompt = given.prompt;
    if (given.n_whole_tokens) options.n_whole = {given.n_whole_tokens, n_texts};
    if (given.n_likeliest) options.n_likeliest = given.n_likeliest;
    if (given.most_answer_tokens) options.most_answer_tokens = given.most_answer_tokens;
    options.may_lack_answer = given.may_lack_answer != 0;
    options.joins_entities = given.joins_entities != 0;
    options.parse_special = given.parse_special != 0;
    return options;
}

/// The model's head for classes, or for anything else.
const Head& need_head(const fovea_host_model& model, bool of_classes) {
    if (!model.head) static_cast<void>(head_of(model.opened));  // throws for a model without a head
    if ((model.head->task == HeadTask::classes) != of_classes)
        throw host::Error(model.opened.name + ": model: expected one with " +
                          (of_classes ? "labels of texts" : "a head for words, answers or masks") +
                          ", got another head");
    return *model.head;
}

/// What a head found, with views of its texts.
std::vector<fovea_host_finding> findings_of(const HeadResult& result) {
    std::vector<fovea_host_finding> all;
    for (const LabelledWord& w : result.words) all.push_back({w.word.c_str(), w.best.label.c_str(), w.best.score, 0});
    if (!result.answer.text.empty()) all.push_back({result.answer.text.c_str(), "", result.answer.score, 0});
    for (std::size_t mask = 0; mask < result.masks.size(); ++mask)
        for (const LabelScore& token : result.masks[mask]) all.push_back({token.label.c_str(), "", token.score, mask});
    return all;
}

/// The same with their texts in one block of memory.
fovea_host_finding* copy_of(const std::vector<fovea_host_finding>& from) {
    std::size_t n_text = 0;
    for (const fovea_host_finding& one : from) n_text += std::strlen(one.text) + std::strlen(one.label) + 2;
    TextBlock block(from.size() * sizeof(fovea_host_finding), n_text);
    auto* findings = static_cast<fovea_host_finding*>(block.begin());
    for (std::size_t i = 0; i < from.size(); ++i)
        new (findings + i)
            fovea_host_finding{block.add(from[i].text), block.add(from[i].label), from[i].score, from[i].mask};
    return findings;
}

}  // namespace

extern "C" {

int fovea_host_embed(const fovea_host_model* model, const char* const* texts, size_t n_texts,
                     const fovea_host_text_options* options, float* vectors) {
    return run([&] {
        const host::Opened& opened = need(model, "model")->opened;
        const auto given = read_struct(options);
        std::vector<std::string> read;
        for (const char* text : need_array(texts, n_texts, "texts")) read.emplace_back(need(text, "text"));
        const std::vector<float> made = host::embed(opened, read, options_of(given, n_texts));
        std::copy(made.begin(), made.end(), n_texts ? need(vectors, "vectors") : vectors);
    });
}

int fovea_host_embed_sparse(const fovea_host_model* model, const char* text, const fovea_host_text_options* options,
                            fovea_host_weight** weights, size_t* n_weights) {
    return run([&] {
        need(weights, "weights"), need(n_weights, "n_weights");
        const std::string read = need(text, "text");
        const host::Opened& opened = need(model, "model")->opened;
        const auto made = host::embed_sparse(opened, {&read, 1}, options_of(read_struct(options), 1));
        std::vector<fovea_host_weight> found;
        for (const TokenWeight& token : made.front()) found.push_back({token.id, token.weight});
        *weights = copy_of(std::span<const fovea_host_weight>(found));
        *n_weights = found.size();
    });
}

int fovea_host_embed_tokens(const fovea_host_model* model, const char* text, int is_query,
                            const fovea_host_text_options* options, float** rows, size_t* n_rows, size_t* width) {
    return run([&] {
        need(rows, "rows"), need(n_rows, "n_rows"), need(width, "width");
        const std::string read = need(text, "text");
        const host::TextOptions how = options_of(read_struct(options), 1);
        const auto found = host::embed_tokens(need(model, "model")->opened, {&read, 1}, is_query != 0, how);
        const host::TextRows& made = found.front();
        *rows = copy_of(std::span<const float>(made.values));
        *n_rows = made.ids.size();
        *width = made.width;
    });
}

int fovea_host_rank(const fovea_host_model* model, const char* query, const char* const* documents, size_t n_documents,
                    const fovea_host_text_options* options, double* scores) {
    return run([&] {
        const std::string asked = need(query, "query");
        std::vector<Text> pairs;
        for (const char* document : need_array(documents, n_documents, "documents"))
            pairs.push_back({asked, need(document, "document")});
        if (n_documents) need(scores, "scores");
        const host::TextOptions how = options_of(read_struct(options), n_documents);
        const std::vector<double> found = host::score_pairs(need(model, "model")->opened, pairs, how);
        std::copy(found.begin(), found.end(), scores);
    });
}

int fovea_host_classify(const fovea_host_model* model, const char* const* texts, const char* const* pairs,
                        size_t n_texts, const fovea_host_text_options* options, float* scores) {
    return run([&] {
        const Head& head = need_head(*need(model, "model"), true);
        const auto given = read_struct(options);
        std::vector<Text> read;
        for (const char* text : need_array(texts, n_texts, "texts")) {
            const std::size_t i = read.size();
            read.push_back({need(text, "text"), {}});
            if (pairs && pairs[i]) read.back().pair = pairs[i];
        }
        if (n_texts) need(scores, "scores");
        for (const HeadResult& result : host::classify(model->opened, head, read, options_of(given, n_texts))) {
            for (const LabelScore& one : result.labels) scores[one.index] = static_cast<float>(one.score);
            scores += result.labels.size();
        }
    });
}

int fovea_host_rows(const fovea_host_model* model, const char* text, const char* pair, int of_head,
                    const fovea_host_text_options* options, float** rows, size_t* n_rows, size_t* width) {
    return run([&] {
        need(rows, "rows"), need(n_rows, "n_rows"), need(width, "width");
        Text read{need(text, "text"), {}};
        if (pair) read.pair = pair;
        const host::TextOptions how = options_of(read_struct(options), 1);
        const auto found = host::rows_of(need(model, "model")->opened, {&read, 1}, of_head != 0, how);
        const host::TextRows& made = found.front();
        *rows = copy_of(std::span<const float>(made.values));
        *n_rows = made.values.size() / made.width;
        *width = made.width;
    });
}

int fovea_host_find(const fovea_host_model* model, const char* text, const char* pair,
                    const fovea_host_text_options* options, fovea_host_finding** findings, size_t* n_findings) {
    return run([&] {
        need(findings, "findings"), need(n_findings, "n_findings");
        const Head& head = need_head(*need(model, "model"), false);
        Text read{need(text, "text"), {}};
        if (pair) read.pair = pair;
        const auto results = host::classify(model->opened, head, {&read, 1}, options_of(read_struct(options), 1));
        const std::vector<fovea_host_finding> found = findings_of(results.front());
        *findings = copy_of(found);
        *n_findings = found.size();
    });
}
}
