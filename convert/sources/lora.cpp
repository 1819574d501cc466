#include "convert/sources/lora.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

#include "convert/formats/text_file.h"
#include "convert/formats/torch_pickle.h"
#include "convert/sources/hf_config.h"
#include "host/base/elements.h"
#include "host/base/error.h"
#include "host/base/source_file.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

bool is_set(const SortedJson& value) {
    return !(value.is_null() || (value.is_boolean() && !value.get<bool>()) || (!value.is_boolean() && value.empty()));
}

/// What adds something else than products, or was trained beside another base than the folder that is given.
void refuse_others(const Fields& fields) {
    if (fields.text("peft_type") != "LORA") fields.refuse("peft_type", "LORA");
    for (const char* name : {"use_dora", "lora_bias", "trainable_token_indices", "target_parameters",
                             "layer_replication", "alora_invocation_tokens", "use_qalora", "arrow_config"})
        if (const auto field = fields.json().find(name); field != fields.json().end() && is_set(*field))
            fields.refuse(name, "none");
    if (!fields.has("init_lora_weights") || fields.json()["init_lora_weights"].is_boolean()) return;
    const std::string start = fields.text("init_lora_weights");
    if (start != "gaussian" && start != "orthogonal" &&
        start != "eva")  // others take their start from the base's weights
        fields.refuse("init_lora_weights", "true, false, gaussian, orthogonal or eva");
}

/// Whether a pattern's key, of letters and dots, is `module` or its end behind a dot; with "^" before it all of it.
bool is_named(std::string_view module, std::string_view key) {
    if (key.starts_with('^')) return module == key.substr(1);
    return module == key || (module.ends_with(key) && module[module.size() - key.size() - 1] == '.');
}

/// A number of each module: a field's, or that of the pattern's entry that names the module.
class OfModule {
public:
    OfModule(const Fields& fields, const char* field, const char* patterns) {
        otherwise_ = fields.number(field, 1e-6, 1e6);
        if (!fields.has(patterns)) return;
        const Fields object = fields.object(patterns);
        for (const auto& [key, value] : object.json().items()) {
            const bool plain = std::all_of(key.begin() + key.starts_with('^'), key.end(), [](unsigned char c) {
                return std::isalnum(c) || c == '_' || c == '.' || c == '-';
            });
            if (!plain || key.empty())
                throw host::Error(object.place() + ": expected names of modules, got the expression " + key);
            entries_.emplace_back(key, object.number(key.c_str(), 1e-6, 1e6));
        }
        place_ = object.place();
    }

    double of(std::string_view module) const {
        std::optional<double> found;
        for (const auto& [key, value] : entries_) {
            if (!is_named(module, key)) continue;
            if (found && *found != value)
                throw host::Error(place_ + ": expected one number for " + std::string(module) + ", got two");
            found = value;
        }
        return found.value_or(otherwise_);
    }

private:
    double otherwise_ = 0;
    std::vector<std::pair<std::string, double>> entries_;
    std::string place_;
};

/// Which modules the settings name. PEFT leaves out the products of others, so a file that has some is refused.
class Targets {
public:
    explicit Targets(const Fields& fields) : targets_(names_in(fields, "target_modules")) {
        if (fields.flag_or("ensure_weight_tying", false)) targets_.clear();  // the table's twin is not named
        excluded_ = names_in(fields, "exclude_modules");
        const SortedJson layers = fields.json().value("layers_to_transform", SortedJson());
        for (const SortedJson& layer : layers.is_array() || layers.is_null() ? layers : SortedJson::array({layers})) {
            if (!layer.is_number_unsigned()) fields.refuse("layers_to_transform", "numbers of layers");
            layers_.push_back(layer.get<std::uint64_t>());
        }
    }

    /// The setting that leaves the module out, or null.
    [[nodiscard]] const char* leaving_out(std::string_view module) const {
        const auto names = [&](const std::string& name) { return is_named(module, name); };
        if (std::any_of(excluded_.begin(), excluded_.end(), names)) return "exclude_modules";
        if (!targets_.empty() && std::none_of(targets_.begin(), targets_.end(), names)) return "target_modules";
        if (layers_.empty() || std::find(layers_.begin(), layers_.end(), layer_of(module)) != layers_.end())
            return nullptr;
        return "layers_to_transform";
    }

private:
    /// Names alone: what is said by an expression, or by a word for all, is not compared.
    static std::vector<std::string> names_in(const Fields& fields, const char* field) {
        return fields.has(field) && fields.json()[field].is_array() ? fields.texts(field) : std::vector<std::string>();
    }

    /// The first part of the name that is a number.
    static std::uint64_t layer_of(std::string_view module) {
        while (!module.empty()) {
            const std::string part(module.substr(0, module.find('.')));
            if (!part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos)
                return std::stoull(part);
            module.remove_prefix(std::min(part.size() + 1, module.size()));
        }
        return std::uint64_t(-1);
    }

    std::vector<std::string> targets_, excluded_;
    std::vector<std::uint64_t> layers_;
};

std::string without(std::string name, std::string_view part) {
    if (const auto at = name.find(part); at != name.npos) name.erase(at, part.size());
    return name;
}

class FolderReader {
public:
    explicit FolderReader(const fs::path& folder)
        : fields_(Fields::read(folder / "adapter_config.json")),
          alpha_((refuse_others(fields_), fields_), "lora_alpha", "alpha_pattern"),
          rank_(fields_, "r", "rank_pattern"),
          targets_(fields_),
          of_root_(fields_.flag_or("use_rslora", false)) {
        result_.config = folder / "adapter_config.json";
        if (fields_.has("modules_to_save")) copied_ = fields_.texts("modules_to_save");
        const fs::path tensors = folder / "adapter_model.safetensors", pickle = folder / "adapter_model.bin";
        if (!is_there(tensors) && !is_there(pickle))
            throw host::Error(folder.string() +
                              ": expected adapter_model.safetensors or adapter_model.bin, got neither");
        result_.files = is_there(tensors) ? read_safetensors_file(tensors) : read_torch_file(pickle);
    }

    LoraFolder read() {
        constexpr std::string_view kOuter = "base_model.model.";
        for (const auto& [name, tensor] : result_.files.tensors) {
            if (!name.starts_with(kOuter)) refuse(name, "a name that begins with " + std::string(kOuter));
            const std::string inner = name.substr(kOuter.size());
            if (inner.find(".lora_") == inner.npos)
                add_replaced(inner, tensor);
            else if (inner.ends_with(".lora_A.weight"))
                add_product(name, inner.substr(0, inner.size() - 14), "A.weight", "B.weight", false);
            else if (inner.ends_with(".lora_embedding_A"))
                add_product(name, inner.substr(0, inner.size() - 17), "A", "B", true);
            else if (!inner.ends_with(".lora_B.weight") && !inner.ends_with(".lora_embedding_B"))
                refuse(name, "a factor of a product");
            else if (!result_.files.tensors.count(name.substr(0, name.rfind('B')) + "A" +
                                                  name.substr(name.rfind('B') + 1)))
                refuse(name, "the product's other factor beside it");
        }
        if (result_.products.empty() && result_.replaced.empty())
            throw host::Error(file() + ": expected at least one tensor, got none");
        return std::move(result_);
    }

private:
    std::string file() const { return result_.files.files.front().string(); }
    [[noreturn]] void refuse(const std::string& tensor, const std::string& wanted) const {
        throw host::Error(file() + ": tensor " + tensor + ": expected " + wanted + ", got another");
    }

    void add_replaced(const std::string& inner, const SourceTensor& tensor) {
        const std::string name = without(without(inner, ".base_layer"), ".modules_to_save");
        result_.replaced.emplace(name, tensor);
        const std::string_view module = std::string_view(name).substr(0, name.rfind('.'));
        for (const std::string& copied : copied_)
            if (is_named(module, copied) && inner.find(".base_layer") == inner.npos) result_.copied.insert(name);
    }

    void add_product(const std::string& a_name, const std::string& module, const std::string& a_end,
                     const std::string& b_end, bool embedding) {
        if (const char* setting = targets_.leaving_out(module))
            refuse(a_name, std::string("a module that adapter_config.json's ") + setting + " keeps");
        const std::string b_name = a_name.substr(0, a_name.size() - a_end.size()) + b_end;
        const std::string place = file() + ": tensor " + a_name, b_place = file() + ": tensor " + b_name;
        const SourceTensor& a = result_.files.tensors.at(a_name);
        const auto found = result_.files.tensors.find(b_name);
        if (found == result_.files.tensors.end()) throw host::Error(b_place + ": expected the other factor, got none");
        const SourceTensor& b = found->second;
        if (a.shape.size() != 2 || b.shape.size() != 2 || a.shape[0] == 0 || a.shape[0] != b.shape[1])
            throw host::Error(place + ": expected a matrix of as many rows as the other factor has columns, got " +
                              std::to_string(a.shape.empty() ? 0 : a.shape[0]));
        LoraProduct product{.module = module, .embedding = embedding, .low = {}};
        LowRank& low = product.low;
        low.rank = a.shape[0];
        if (const double wanted = rank_.of(module); wanted != static_cast<double>(low.rank))
            throw host::Error(place + ": expected " + std::to_string(static_cast<std::uint64_t>(wanted)) +
                              " rows as adapter_config.json says, got " + std::to_string(low.rank));
        // An embedding's rows are the ids: the factors are turned, and change places.
        low.left = embedding ? LowRank::Factor{a.data, float_type(a, place), 1, a.shape[1]}
                             : LowRank::Factor{b.data, float_type(b, b_place), low.rank, 1};
        low.right = embedding ? LowRank::Factor{b.data, float_type(b, b_place), low.rank, 1}
                              : LowRank::Factor{a.data, float_type(a, place), 1, a.shape[1]};
        low.n_rows = embedding ? a.shape[1] : b.shape[0];
        low.n_cols = embedding ? b.shape[0] : a.shape[1];
        const auto rank = static_cast<double>(low.rank);
        low.scale = static_cast<float>(alpha_.of(module) / (of_root_ ? std::sqrt(rank) : rank));
        low.name = place;
        result_.products.push_back(std::move(product));
    }

    LoraFolder result_;
    Fields fields_;
    OfModule alpha_, rank_;
    Targets targets_;
    bool of_root_;
    std::vector<std::string> copied_;  // modules that were trained whole, and what is tied to them was not
};

/// out [n]: elements first, first + step, … of numbers of 4 or 2 bytes, each by `convert`.
template<class Bits, class Convert>
void read_elements(const std::byte* data, std::uint64_t first, std::uint64_t step, std::uint64_t n, float* out,
                   Convert convert) {
    for (std::uint64_t i = 0; i < n; ++i) {
        Bits bits;
        std::memcpy(&bits, data + (first + i * step) * sizeof bits, sizeof bits);
        out[i] = convert(bits);
    }
}

}  // namespace

LoraFolder read_lora_folder(const fs::path& folder) {
    if (!is_there(folder / "adapter_config.json"))
        throw host::Error(folder.string() + ": expected a PEFT adapter's folder, got none with an adapter_config.json");
    return FolderReader(folder).read();
}

/// What output heads are called that have no tensor where they are tied.
constexpr std::string_view kHeads[] = {"lm_head.weight", "output_projection.weight", "embed_out.weight"};

std::string find_module(const Safetensors& weights, const std::string& module, const std::string& tensor,
                        const std::string& place) {
    const std::string whole = module.empty() ? tensor : module + "." + tensor;
    for (std::string_view name = whole;; name.remove_prefix(name.find('.') + 1)) {
        if (weights.tensors.count(name)) return std::string(name);
        if (name.find('.') == name.npos || name.substr(name.find('.') + 1) == tensor) break;
    }
    const std::string* found = nullptr;
    for (const auto& [name, unused] : weights.tensors)
        if (name.ends_with("." + whole)) {
            if (found) throw host::Error(place + ": expected one tensor of the model, got " + *found + " and " + name);
            found = &name;
        }
    const bool is_head = std::find(std::begin(kHeads), std::end(kHeads), whole) != std::end(kHeads);
    if (!found && is_head) return whole;
    if (!found) throw host::Error(place + ": expected a tensor that the model's files have, got " + whole);
    return *found;
}

void add_lora(LoraFolder folder, float scale, Safetensors& weights) {
    if (scale != 1.0f && !folder.replaced.empty())
        throw host::Error(folder.config.string() + ": expected products alone where a scale is given, got " +
                          folder.replaced.begin()->first);
    const std::size_t n_files = weights.files.size();
    for (auto& [name, tensor] : folder.replaced) {
        const std::string place = folder.files.files[tensor.file].string() + ": tensor " + name;
        const auto dot = name.rfind('.');
        const bool nested = dot != name.npos;
        const std::string known =
            find_module(weights, nested ? name.substr(0, dot) : "", name.substr(nested ? dot + 1 : 0), place);
        SourceTensor& of_model = weights.tensors[known];
        if (!is_tied_head(of_model) && of_model.shape != tensor.shape)
            throw host::Error(place + ": expected the shape of the model's " + known);
        tensor.file += n_files;
        tensor.added = std::move(of_model.added);
        if (folder.copied.count(name))
            tensor.in_model = of_model.in_model ? of_model.in_model : std::make_shared<const SourceTensor>(of_model);
        of_model = std::move(tensor);
    }
    for (LoraProduct& product : folder.products) {
        const std::string known = find_module(weights, product.module, "weight", product.low.name);
        product.low.scale *= scale;
        weights.tensors[known].added.push_back(std::move(product.low));
    }
    for (auto& file : folder.files.files) weights.files.push_back(std::move(file));
    for (Mapping& mapping : folder.files.mappings) weights.mappings.push_back(std::move(mapping));
    for (auto& copy : folder.files.copies) weights.copies.push_back(std::move(copy));
}

void read_factor(const LowRank::Factor& factor, std::uint64_t row, bool by_rank, std::uint64_t n, float* out) {
    const std::uint64_t first = row * (by_rank ? factor.stride : factor.rank_stride);
    const std::uint64_t step = by_rank ? factor.rank_stride : factor.stride;
    switch (factor.type) {
        case Type::f16: return read_elements<std::uint16_t>(factor.data, first, step, n, out, from_f16);
        case Type::bf16: return read_elements<std::uint16_t>(factor.data, first, step, n, out, from_bf16);
        default: return read_elements<float>(factor.data, first, step, n, out, [](float x) { return x; });
    }
}

void add_low_rank(const LowRank& low, std::uint64_t row, float* out) {
    std::vector<float> left(low.rank), right(low.n_cols), sum(low.n_cols, 0.0f);
    read_factor(low.left, row, true, low.rank, left.data());
    for (std::uint64_t k = 0; k < low.rank; ++k) {
        read_factor(low.right, k, false, low.n_cols, right.data());
        for (std::uint64_t col = 0; col < low.n_cols; ++col) sum[col] = sum[col] + left[k] * right[col];
    }
    for (std::uint64_t col = 0; col < low.n_cols; ++col) out[col] = out[col] + low.scale * sum[col];
}

}  // namespace fovea
