#include "convert/families/heads.h"

#include <array>
#include <string>

#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMostLabels = 1u << 20;

/// "BertForMaskedLM" ends in "MaskedLM"; empty for a model without a head.
std::string head_class(const Fields& fields) {
    if (!fields.has("architectures")) return "";
    const std::vector<std::string> classes = fields.texts("architectures");
    if (classes.empty()) return "";
    const std::size_t at = classes[0].rfind("For");
    return at == std::string::npos ? "" : classes[0].substr(at + 3);
}

/// id2label, in the order of its ids, or as many as num_labels says, LABEL_0 and so on.
std::vector<std::string> read_labels(const Fields& fields) {
    const std::uint32_t n = fields.has("id2label") ? static_cast<std::uint32_t>(fields.json()["id2label"].size())
                                                   : fields.count_or("num_labels", 2);
    if (n < 1 || n > kMostLabels) fields.refuse("id2label", "1 to " + std::to_string(kMostLabels) + " labels");
    std::vector<std::string> labels(n);
    for (std::uint32_t i = 0; i < n; ++i) labels[i] = "LABEL_" + std::to_string(i);
    if (!fields.has("id2label")) return labels;
    const Fields named = fields.object("id2label");
    for (const auto& [id, label] : named.json().items()) {
        const bool number = !id.empty() && id.size() < 8 && id.find_first_not_of("0123456789") == id.npos;
        if (!number || std::stoul(id) >= n || !label.is_string())
            fields.refuse("id2label", "a label for each id from 0 to " + std::to_string(n - 1));
        std::string& text = labels[std::stoul(id)] = label.get<std::string>();
        for (char& c : text) c = c == '\n' || c == '\r' ? ' ' : c;
    }
    return labels;
}

/// How a sequence's logits become scores: as transformers' pipeline and sentence-transformers' CrossEncoder do.
const char* score_function(const Fields& fields, std::size_t n_labels) {
    if (fields.has("sentence_transformers"))
        if (const char* said = scores_of_activation(fields.object("sentence_transformers"), "activation_fn"))
            return said;
    if (const char* said = scores_of_activation(fields, "sbert_ce_default_activation_function")) return said;
    const std::string problem = fields.text_or("problem_type", "");
    if (problem == "regression") return "none";
    return n_labels == 1 || problem == "multi_label_classification" ? "sigmoid" : "softmax";
}

class HeadReader {
public:
    HeadReader(const Fields& fields, HfConfig& result) : fields_(fields), result_(result), stack_(result.stack()) {}

    void add_maps(std::span<const HeadLayer> layers, std::uint32_t last_width) {
        for (std::size_t i = 0; i < layers.size(); ++i) {
            const HeadLayer& layer = layers[i];
            const bool labels = last_width && i + 1 == layers.size();
            HeadMap map;
            map.width = labels                                         ? last_width
                        : layer.of_embedding && stack_.embedding_width ? stack_.embedding_width
                                                                       : stack_.d_model;
            map.activation = activation_of(layer);
            map.bias = layer.bias && (!layer.bias_field || fields_.flag_or(layer.bias_field, false));
            map.norm = layer.norm ? Norm::layer : Norm::none;
            map.norm_bias = layer.norm && (!layer.norm_bias_field || fields_.flag_or(layer.norm_bias_field, false));
            map.norm_epsilon = stack_.final_norm_epsilon;
            name(Role::head_map, i, layer.name, ".weight");
            name(Role::head_map_bias, i, layer.name, ".bias");
            if (layer.norm) name(Role::head_norm, i, layer.norm, ".weight");
            if (layer.norm) name(Role::head_norm_bias, i, layer.norm, ".bias");
            stack_.head[i] = map;
        }
    }

    void add_masked(const HeadForms& forms) {
        add_maps(forms.masked, 0);
        stack_.has_output_head = true;
        stack_.tied_output = fields_.flag_or("tie_word_embeddings", true);
        stack_.output_bias = forms.decoder_bias != nullptr &&
                             (!forms.decoder_bias_field || fields_.flag_or(forms.decoder_bias_field, true));
        if (forms.decoder) name(Role::output, 0, forms.decoder, ".weight");
        if (forms.decoder_bias) name(Role::output_bias, 0, forms.decoder_bias, "");
    }

private:
    /// The field's, the layer's own, or else that of the model's feed-forward parts.
    Activation activation_of(const HeadLayer& layer) const {
        if (!layer.activation_field) return layer.activation;
        if (fields_.has(layer.activation_field)) return read_activation(fields_, layer.activation_field, "");
        return layer.activation == Activation::none ? stack_.blocks[0].feed.activation : layer.activation;
    }

    void name(Role role, std::size_t number, const char* module, const char* tensor) {
        result_.names[{role, static_cast<std::uint32_t>(number)}] = std::string(module) + tensor;
    }

    const Fields& fields_;
    HfConfig& result_;
    Stack& stack_;
};

std::string joined_lines(const std::vector<std::string>& labels) {
    std::string lines;
    for (const std::string& label : labels) lines += label + "\n";
    return lines;
}

constexpr HeadLayer kScores[] = {{.name = "/score", .bias = false}}, kWordScores[] = {{"/score"}};

}  // namespace

const HeadForms kDecoderHeads = {.classes = kScores, .words = kWordScores, .answers = {}, .pooling = Pooling::last};
const HeadForms kOlderDecoderHeads = {.classes = kScores, .answers = {}, .pooling = Pooling::last};

const char* scores_of_activation(const Fields& fields, const char* name) {
    const std::string path = fields.text_or(name, ""), function = path.substr(path.find_last_of('.') + 1);
    if (!path.starts_with("torch.") && path != function) return nullptr;
    if (path.empty()) return nullptr;
    if (function == "Identity") return "none";
    if (function == "Sigmoid") return "sigmoid";
    fields.refuse(name, "Identity or Sigmoid");
}

bool has_classes(const Fields& fields, const HeadForms& forms) {
    const std::string kind = head_class(fields);
    return (kind == "SequenceClassification" && !forms.classes.empty()) ||
           (kind == "TokenClassification" && !forms.words.empty());
}

bool gives_logits(const Fields& fields) { return head_class(fields) == "CausalLM"; }

void score_tokens(const Fields& fields, const ScoredTokens& tokens, HfConfig& config) {
    Stack& stack = config.stack();
    if (!config.encodes) fields.refuse("model_type", "a decoder, whose logits make a score");
    if (config.left_out.softcap != 0.0f)
        fields.refuse("final_logit_softcapping", "none of a model whose logits make a score");
    if (config.left_out.bias) fields.refuse("model_type", "an output head without a bias, where logits make a score");
    for (const Token token : {tokens.yes, tokens.no.value_or(0)})
        if (token >= stack.vocab_size)
            fields.refuse("vocab_size", "more than " + std::to_string(token) + ", a token whose logit makes the score");
    config.scored = tokens;
    stack.pooling = Pooling::last;
    stack.head[0].width = 1;
    config.source.info.insert(config.source.info.end(),
                              {{"task", "text-classification"}, {"labels", "yes\n"}, {"scores", "sigmoid"}});
}

void read_head(const Fields& fields, const HeadForms& forms, HfConfig& result) {
    const std::string kind = head_class(fields);
    Stack& stack = result.stack();
    auto& info = result.source.info;
    HeadReader reader(fields, result);
    if (kind == "SequenceClassification" && !forms.classes.empty()) {
        const std::vector<std::string> labels = read_labels(fields);
        stack.pooling = forms.pooling;
        if (forms.pooling_field && fields.text_or(forms.pooling_field, "cls") == "mean") stack.pooling = Pooling::mean;
        reader.add_maps(forms.classes, static_cast<std::uint32_t>(labels.size()));
        info.emplace_back("task", "text-classification");
        info.emplace_back("labels", joined_lines(labels));
        info.emplace_back("scores", score_function(fields, labels.size()));
    } else if (kind == "TokenClassification" && !forms.words.empty()) {
        const std::vector<std::string> labels = read_labels(fields);
        reader.add_maps(forms.words, static_cast<std::uint32_t>(labels.size()));
        info.emplace_back("task", "token-classification");
        info.emplace_back("labels", joined_lines(labels));
        info.emplace_back("scores", "softmax");
    } else if (kind == "QuestionAnswering" && !forms.answers.empty()) {
        reader.add_maps(forms.answers, 2);
        info.emplace_back("task", "question-answering");
    } else if (kind == "MaskedLM" && !forms.masked.empty()) {
        reader.add_masked(forms);
        info.emplace_back("task", "fill-mask");
    } else if (!kind.empty() && kind != "PreTraining") {
        result.source.notes.push_back("config.json: the head of a model for " + kind + " is left out");
    }
}

void read_word_head(const Fields& fields, const HeadForms& forms, HfConfig& result) {
    HeadReader(fields, result).add_masked(forms);
}

}  // namespace fovea
