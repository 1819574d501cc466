#include "serve/api/model_facts.h"

#include "serve/api/infill.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "host/base/words.h"
#include "host/model/listing.h"
#include "host/model/parameters.h"
#include "host/model/stacks.h"

namespace fovea::serve {
namespace {

/// "135M", "1.5B".
std::string short_count(std::uint64_t n) {
    static constexpr struct {
        double size;
        const char* unit;
    } kUnits[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}, {1, ""}};
    char text[40];
    for (const auto& [size, unit] : kUnits) {
        const double number = static_cast<double>(n) / size;
        if (number < 1 && size > 1) continue;
        std::snprintf(text, sizeof text, number < 10 && size > 1 ? "%.1f%s" : "%.0f%s", number, unit);
        return text;
    }
    return "0";
}

/// The type of most of a file's bytes of weights.
std::string main_type(const Model& model) {
    std::map<Type, std::uint64_t> bytes;
    for (const TensorInfo& tensor : tensors(model)) bytes[tensor.type] += tensor.bytes;
    const auto most =
        std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == bytes.end() ? "" : type_name(most->first);
}

}  // namespace

std::optional<Head> class_head_of(const PlannedModel& planned) try {
    if (planned.work != Work::vectors || !planned.served.has_task()) return std::nullopt;
    Head head = head_of(planned.served);
    return head.task == HeadTask::classes ? std::optional(std::move(head)) : std::nullopt;
} catch (const host::Error&) {  // one without words
    return std::nullopt;
}

ModelTask task_of(const PlannedModel& planned) {
    if (planned.work != Work::vectors) return planned.work == Work::text ? ModelTask::writes : ModelTask::hears;
    if (planned.served.scores_pairs() || planned.served.has_late_interaction()) return ModelTask::ranks;
    if (planned.served.makes_sparse()) return ModelTask::weighs;
    return planned.served.has_task() ? ModelTask::classifies : ModelTask::embeds;
}

Json capabilities_of(const PlannedModel& planned) {
    const Model& model = planned.served.model;
    const std::string_view chat_template = model.info().chat_template;
    const auto mentions = [&](const char* word) { return chat_template.find(word) != chat_template.npos; };
    Json all = Json::array({planned.work == Work::text             ? "completion"
                            : planned.work != Work::vectors        ? "transcription"
                            : task_of(planned) == ModelTask::ranks ? "rerank"
                            : class_head_of(planned)               ? "classification"
                                                                   : "embedding"});
    if (planned.served.kind() == host::Kind::translation) all.push_back("translation");
    const bool talks = planned.served.kind() == host::Kind::text && planned.work == Work::text;
    if (talks && !chat_template.empty()) all.push_back("tools");
    if (talks && Infill(planned.served)) all.push_back("insert");
    if (mentions("enable_thinking") || mentions("<think>")) all.push_back("thinking");
    return all;
}

Json details_of(const PlannedModel& planned) {
    const Model& model = planned.served.model;
    const std::string family(model.info().architecture);
    return {{"format", "fovea"},
            {"family", family},
            {"families", Json::array({family})},
            {"parent_model", ""},
            {"parameter_size", short_count(count_parameters(model.config()).total)},
            {"quantization_level", main_type(model)}};
}

Json meta_of(const PlannedModel& planned) {
    const Model& model = planned.served.model;
    const Stack& stack = input_stack(model.config());
    return {{"n_vocab", stack.vocab_size},
            {"n_ctx", planned.context},
            {"n_ctx_train", stack.max_positions},
            {"n_embd", stack.d_model},
            {"n_params", count_parameters(model.config()).total},
            {"size", model.bytes().size()}};
}

std::string digest_of(const PlannedModel& planned) {
    char digits[65];
    std::snprintf(digits, sizeof digits, "%064x", planned.served.model.fingerprint());
    return digits;
}

ModelFacts facts_of(const PlannedModel& planned, std::int64_t started) {
    const std::string& name = planned.served.name;
    const Model& model = planned.served.model;
    const ModelInfo& info = model.info();
    const std::string architecture(info.architecture);
    const Stack& stack = input_stack(model.config());
    const Json capabilities = capabilities_of(planned), details = details_of(planned);
    return {.task = task_of(planned),
            .openai = {{"id", name},
                       {"object", "model"},
                       {"created", started},
                       {"owned_by", "fovea"},
                       {"root", name},
                       {"parent", nullptr},
                       {"max_model_len", planned.context},
                       {"capabilities", capabilities},
                       {"meta", meta_of(planned)},
                       {"size", model.bytes().size()},
                       {"memory", planned.memory_bytes}},
            .ollama = {{"name", name},
                       {"model", name},
                       {"modified_at", utc_time(started)},
                       {"size", model.bytes().size()},
                       {"digest", digest_of(planned)},
                       {"details", details},
                       {"context_length", planned.context}},
            .shown = {{"modelfile", "FROM " + name},
                      {"parameters", ""},
                      {"template", info.chat_template},
                      {"details", details},
                      {"model_info",
                       {{"general.architecture", architecture},
                        {"general.parameter_count", count_parameters(model.config()).total},
                        {architecture + ".context_length", planned.context},
                        {architecture + ".block_count", stack.n_layers},
                        {architecture + ".embedding_length", stack.d_model},
                        {architecture + ".vocab_size", stack.vocab_size}}},
                      {"capabilities", capabilities},
                      {"modified_at", utc_time(started)}}};
}

}  // namespace fovea::serve
