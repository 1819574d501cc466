// POST /v1/rerank, Cohere's /v2/rerank, and /rerank, which is TEI's too: texts in the order of their scores for a query.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "serve/api/model_facts.h"
#include "serve/api/other_fields.h"
#include "serve/api/text_fields.h"
#include "serve/api/vector_answer.h"

namespace fovea::serve {
namespace {

/// Whose form a request and its answer have. Jina's is llama.cpp's and vLLM's too.
enum class RankForm { jina, cohere, tei };

/// Texts are to be scored for a query.
struct RankRequest {
    RankForm form = RankForm::jina;
    std::string model, query;
    std::vector<std::string> documents;
    std::uint32_t n_best = 0;      ///< of those; 0: all
    bool shows_documents = false;  ///< in the answer, too
    bool shows_logits = false;     ///< in place of scores
};

/// As Jina's, Cohere's and llama.cpp's servers have it: documents are texts, or objects with a text.
RankRequest read_rerank(const Fields& fields, bool is_cohere) {
    RankRequest request;
    const bool is_tei = fields.find("texts") && !fields.find("documents");
    request.form = is_tei ? RankForm::tei : is_cohere ? RankForm::cohere : RankForm::jina;
    const char* name = is_tei ? "texts" : "documents";
    request.model = fields.text("model");
    request.query = fields.text("query");
    if (request.query.empty()) refuse("query", "a text", "none");
    const Json& documents = fields.need(name, "an array of texts");
    if (!documents.is_array() || documents.size() > kMostTexts)
        fields.refuse(name, "an array of at most " + std::to_string(kMostTexts) + " texts", documents);
    for (const Json& document : documents) {
        const Json& said = document.is_object() && document.contains("text") ? document["text"] : document;
        if (!said.is_string()) fields.refuse(name, "texts, or objects with a text", document);
        request.documents.push_back(said.get<std::string>());
    }
    if (request.documents.empty()) refuse(name, "1 text or more", "none");
    request.shows_documents = fields.flag(is_tei ? "return_text" : "return_documents", false);
    if (is_tei) {
        request.shows_logits = fields.flag("raw_scores", false);
        fields.only("top_n", Json());
        fields.only("return_documents", false);
        return request;
    }
    for (const char* name : {"raw_scores", "return_text"}) fields.only(name, false);
    request.n_best = static_cast<std::uint32_t>(fields.whole("top_n", 0, 0, 1 << 24));
    return request;
}

Json ranked(const RankRequest& request, const std::string& id, const host::Opened& served, const Vectors& scores) {
    // TEI's scores are between 0 and 1 unless logits are asked for, whatever the model's own are. Sums of products are no logits.
    const bool is_tei = request.form == RankForm::tei;
    const bool through_sigmoid = !served.has_late_interaction() &&
                                 (is_tei ? !request.shows_logits : find_info(served.model, "scores") == "sigmoid");
    const auto score_of = [&](std::size_t i) {
        const double logit = scores.all[i].at(0);
        return through_sigmoid ? 1.0 / (1.0 + std::exp(-logit)) : logit;
    };
    std::vector<std::size_t> order(scores.all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return scores.all[a].at(0) > scores.all[b].at(0); });
    if (request.n_best && request.n_best < order.size()) order.resize(request.n_best);
    Json results = Json::array();
    for (const std::size_t i : order) {
        results.push_back({{"index", i}, {is_tei ? "score" : "relevance_score", score_of(i)}});
        if (!request.shows_documents) continue;
        if (is_tei)
            results.back()["text"] = request.documents[i];
        else
            results.back()["document"] = {{"text", request.documents[i]}};
    }
    if (is_tei) return results;
    if (request.form == RankForm::cohere)
        return {{"id", id},
                {"results", std::move(results)},
                {"meta", {{"api_version", {{"version", "2"}}}, {"tokens", {{"input_tokens", scores.n_tokens}}}}}};
    return {{"id", id},
            {"object", "list"},
            {"model", served.name},
            {"results", std::move(results)},
            {"usage", scores.usage()}};
}

}  // namespace

Reply endpoints::rerank(Call& call, Service& service) {
    const Fields fields = fields_of(
        call, {"model", "query", "documents", "texts", "top_n", "return_documents", "return_text", "raw_scores"});
    RankRequest request = read_rerank(fields, call.path.starts_with("/v2/"));
    check_members(call.json, kRanks, call.ignored);
    ModelEntry& entry = service.find(call, request.model, Work::vectors, ModelTask::ranks);
    const host::Opened& served = entry.served;
    const bool is_late = served.has_late_interaction();
    if (!served.scores_pairs() && !is_late)
        refuse("model", "a reranker, a CrossEncoder with one label or late interaction", served.name);
    const JobPtr job = job_of(call);
    PromptReader::Prompted read;
    if (is_late) {
        entry.prompts.add_late({std::exchange(request.query, {})}, true, "query", read);
        entry.prompts.add_late(request.documents, false, "documents", read);
    } else {
        read = entry.prompts.read_pairs(std::exchange(request.query, {}), request.documents, "query");
    }
    job->prompts = std::move(read.prompts);
    job->types = std::move(read.types);
    job->n_unseen = std::move(read.n_unseen);
    job->result = is_late ? EncoderResult::likenesses : EncoderResult::scores;
    if (!request.shows_documents) request.documents.clear();
    std::size_t n_kept = 0;
    for (const std::string& document : request.documents) n_kept += sizeof document + document.size();
    auto word = [request = std::move(request), id = call.id, &served, is_late](const Vectors& scores) {
        Vectors of_documents = scores;
        if (is_late) of_documents.all.erase(of_documents.all.begin());  // the query's place
        return ranked(request, id, served, of_documents);
    };
    auto answer = std::make_unique<VectorAnswer>(job->n_choices(), std::move(word), 0, false, n_kept);
    return reply_of(call, entry, job, std::move(answer), false);
}

}  // namespace fovea::serve
