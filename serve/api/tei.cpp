// POST /embed and /predict, GET /info: the forms of Hugging Face's text-embeddings-inference. Its /rerank is in rerank.cpp.
#include <algorithm>
#include <optional>

#include "fovea/host/texts.h"
#include "fovea/version.h"
#include "host/model/head_results.h"
#include "serve/api/model_facts.h"
#include "serve/api/other_fields.h"
#include "serve/api/vector_answer.h"

namespace fovea::serve {
namespace {

/// A text, or two; in an array of arrays those of several.
std::vector<Text> read_inputs_of_classes(const Fields& fields, bool& is_batch) {
    const Json& inputs = fields.need("inputs", "a text");
    is_batch = inputs.is_array() && !inputs.empty() && inputs[0].is_array();
    if (inputs.size() > kMostTexts) fields.refuse("inputs", "at most " + std::to_string(kMostTexts) + " texts", inputs);
    std::vector<Text> texts;
    for (const Json& input : is_batch ? inputs : Json::array({inputs})) {
        const Json words = input.is_array() ? input : Json::array({input});
        const bool fits = (words.size() == 1 || words.size() == 2) && words[0].is_string() && words.back().is_string();
        if (!fits) fields.refuse("inputs", "a text, a pair of texts, or an array of arrays of these", input);
        texts.push_back({words[0].get<std::string>(), {}});
        if (words.size() == 2) texts.back().pair = words[1].get<std::string>();
    }
    return texts;
}

/// A classifier's labels by their ids, and their ids.
Json classifier_of(const Head& head) {
    Json words = Json::object(), ids = Json::object();
    for (std::size_t i = 0; i < head.labels.size(); ++i) {
        words[std::to_string(i)] = head.labels[i];
        ids[head.labels[i]] = std::to_string(i);
    }
    return {{"id2label", std::move(words)}, {"label2id", std::move(ids)}};
}

void add_prompts(Job& job, PromptReader& reader, const Text& text) {
    VectorRequest single;
    single.prompts.push_back({text.text, {}, false});
    single.field = "inputs";
    single.cuts = true;
    PromptReader::Prompted read =
        text.pair ? reader.read_pairs(text.text, {*text.pair}, "inputs") : reader.read(single);
    job.prompts.push_back(std::move(read.prompts.front()));
    job.types.push_back(read.types.empty() ? std::vector<Token>{} : std::move(read.types.front()));
}

VectorRequest read_texts(const Fields& fields) {
    VectorRequest request;
    request.model = fields.text("model");
    request.field = "inputs";
    request.prompts = read_prompts(fields.need(request.field, "a text"), request.field, kMostTexts);
    read_vector_options(fields, request, false);
    return request;
}

}  // namespace

Reply endpoints::embed_sparse(Call& call, Service& service) {
    const VectorRequest request = read_texts(fields_of(call, {"model", "inputs", "prompt_name", "truncate"}));
    ModelEntry& entry = service.find(call, request.model, Work::vectors, ModelTask::weighs);
    if (!entry.served.makes_sparse()) refuse("model", "one that makes sparse vectors", entry.served.name);
    const JobPtr job = job_of(call);
    job->prompts = entry.prompts.read(request).prompts;
    job->result = EncoderResult::weights;
    const auto word = [](const Vectors& vectors) {
        Json all = Json::array();
        for (const std::vector<float>& of_text : vectors.all) {
            Json weights = Json::array();
            for (std::size_t i = 0; i < of_text.size(); i += 2)
                weights.push_back({{"index", static_cast<Token>(of_text[i])}, {"value", of_text[i + 1]}});
            all.push_back(std::move(weights));
        }
        return all;
    };
    return reply_of(call, entry, job, std::make_unique<VectorAnswer>(job->n_choices(), word), false);
}

Reply endpoints::embed_all(Call& call, Service& service) {
    const VectorRequest request = read_texts(fields_of(call, {"model", "inputs", "prompt_name"}));
    ModelEntry& entry = service.find(call, request.model, Work::vectors, ModelTask::ranks);
    const LateModel* late = entry.prompts.late();
    if (!late) refuse("model", "one of late interaction, which has vectors of tokens", entry.served.name);
    const std::string side = request.prompt_name.value_or("document");
    if (side != "query" && side != "document") refuse("prompt_name", "query or document", side);
    const JobPtr job = job_of(call);
    job->are_queries = side == "query";
    job->result = EncoderResult::tokens;
    std::vector<std::string> texts;
    for (const Prompt& prompt : request.prompts) {
        if (prompt.is_tokens) refuse("inputs", "texts", "token ids");
        texts.push_back(prompt.text);
    }
    PromptReader::Prompted read;
    entry.prompts.add_late(texts, job->are_queries, "inputs", read);
    constexpr std::size_t kMostValues = 1u << 22;  // of an answer: 16 MB of floats
    const std::size_t width = late->width();
    std::size_t n_tokens = 0;
    for (const std::vector<Token>& prompt : read.prompts) n_tokens += prompt.size();
    if (n_tokens > kMostValues / width)
        refuse("inputs", "at most " + std::to_string(kMostValues / width) + " tokens", std::to_string(n_tokens));
    job->prompts = std::move(read.prompts);
    job->n_unseen = std::move(read.n_unseen);
    const auto word = [width](const Vectors& vectors) {
        Json all = Json::array();
        for (const std::vector<float>& of_text : vectors.all) {
            Json rows = Json::array();
            for (auto at = of_text.begin(); at != of_text.end(); at += static_cast<std::ptrdiff_t>(width))
                rows.push_back(std::vector<float>(at, at + static_cast<std::ptrdiff_t>(width)));
            all.push_back(std::move(rows));
        }
        return all;
    };
    return reply_of(call, entry, job, std::make_unique<VectorAnswer>(job->n_choices(), word), false);
}

Reply endpoints::embed_bare(Call& call, Service& service) {
    const Fields fields = fields_of(call, {"model", "inputs", "prompt_name", "dimensions", "truncate", "normalize"});
    const VectorRequest request = read_texts(fields);
    ModelEntry& entry = service.find(call, request.model, Work::vectors, ModelTask::embeds);
    return vector_reply(call, entry, request, fields.flag("normalize", true),
                        [](const Vectors& vectors) { return Json(vectors.all); });
}

Reply endpoints::predict(Call& call, Service& service) {
    const Fields fields = fields_of(call, {"model", "inputs", "raw_scores"});
    bool is_batch = false;
    const std::vector<Text> texts = read_inputs_of_classes(fields, is_batch);
    const bool is_raw = fields.flag("raw_scores", false);
    ModelEntry& entry = service.find(call, fields.text("model"), Work::vectors, ModelTask::classifies);
    const std::optional<Head> head = class_head_of(entry);
    if (!head) refuse("model", "a model with a head for classes", entry.served.name);
    const JobPtr job = job_of(call);
    for (const Text& text : texts) add_prompts(*job, entry.prompts, text);
    job->result = EncoderResult::scores;
    const auto word = [head = *head, is_batch, is_raw](const Vectors& logits) {
        Json all = Json::array();
        for (const std::vector<float>& of_text : logits.all) {
            Json labels = Json::array();
            for (const LabelScore& score : label_scores(head, of_text))
                labels.push_back({{"score", is_raw ? score.logit : score.score}, {"label", score.label}});
            all.push_back(std::move(labels));
        }
        return is_batch ? all : all.front();
    };
    return reply_of(call, entry, job, std::make_unique<VectorAnswer>(job->n_choices(), word), false);
}

Reply endpoints::tell_info(Call&, Service& service) {
    const ModelEntry& entry = service.first_of(Work::vectors);
    Json type = Json::object();
    if (entry.served.scores_pairs() || entry.served.has_late_interaction())
        type["reranker"] = Json::object();
    else if (const std::optional<Head> head = class_head_of(entry))
        type["classifier"] = classifier_of(*head);
    else if (entry.work == Work::vectors)
        type["embedding"] = {{"dimensions", entry.served.vector_width()}};
    return reply_of({{"model_id", entry.served.name},
                     {"model_sha", digest_of(entry)},
                     {"model_dtype", details_of(entry)["quantization_level"]},
                     {"model_type", std::move(type)},
                     {"max_input_length", entry.context},
                     {"max_client_batch_size", kMostTexts},
                     {"capabilities", capabilities_of(entry)},
                     {"version", FOVEA_VERSION}});
}

}  // namespace fovea::serve
