// POST /v1/rerank: texts in the order of their scores for a query.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "serve/api/fields.h"
#include "serve/api/vector_answer.h"

namespace fovea::serve {
namespace {

/// Texts are to be scored for a query.
struct RankRequest {
    std::string model, query;
    std::vector<std::string> documents;
    std::uint32_t n_best = 0;      ///< of those; 0: all
    bool shows_documents = false;  ///< in the answer, too
};

/// As Jina's, Cohere's and llama.cpp's servers have it: documents are texts, or objects with a text.
RankRequest read_rerank(const Fields& fields) {
    RankRequest request;
    request.model = fields.text("model");
    request.query = fields.text("query");
    if (request.query.empty()) refuse("query", "a text", "none");
    const Json& documents = fields.need("documents", "an array of texts");
    if (!documents.is_array() || documents.size() > kMostTexts)
        fields.refuse("documents", "an array of at most " + std::to_string(kMostTexts) + " texts", documents);
    for (const Json& document : documents) {
        const Json& said = document.is_object() && document.contains("text") ? document["text"] : document;
        if (!said.is_string()) fields.refuse("documents", "texts, or objects with a text", document);
        request.documents.push_back(said.get<std::string>());
    }
    if (request.documents.empty()) refuse("documents", "1 text or more", "none");
    request.n_best = static_cast<std::uint32_t>(fields.whole("top_n", 0, 1, 1 << 24));
    request.shows_documents = fields.flag("return_documents", false);
    return request;
}

Json ranked(const RankRequest& request, const std::string& id, const host::Opened& served, const Vectors& scores) {
    const bool through_sigmoid = find_info(served.model, "scores") == "sigmoid";
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
        results.push_back({{"index", i}, {"relevance_score", score_of(i)}});
        if (request.shows_documents) results.back()["document"] = {{"text", request.documents[i]}};
    }
    return {{"id", id},
            {"object", "list"},
            {"model", served.name},
            {"results", std::move(results)},
            {"usage", scores.usage()}};
}

}  // namespace

Reply endpoints::rerank(Call& call, Service& service) {
    RankRequest request = read_rerank(Fields(call.json));
    ModelEntry& entry = service.find(request.model, Work::vectors);
    const host::Opened& served = entry.served;
    if (!served.scores_pairs()) refuse("model", "a reranker, a CrossEncoder with one label", served.name);
    const JobPtr job = job_of(call);
    PromptReader::Prompted read = entry.prompts.read_pairs(request.query, request.documents);
    job->prompts = std::move(read.prompts);
    job->types = std::move(read.types);
    job->scores = true;
    const auto word = [request = std::move(request), id = call.id, &served](const Vectors& scores) {
        return ranked(request, id, served, scores);
    };
    return reply_of(call, entry, job, std::make_unique<VectorAnswer>(job->n_choices(), word), false);
}

}  // namespace fovea::serve
