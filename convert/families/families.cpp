#include <utility>

#include "convert/families/family.h"
#include "convert/weights/mapped_weights.h"

namespace fovea {
namespace {

constexpr const Family* kFamilies[] = {
#define FOVEA_FAMILY(name) &families::name,
#include "convert/families/families.inc"
#undef FOVEA_FAMILY
};

const ModelType* find_type(const Family& family, const std::string& model_type) {
    for (const ModelType& type : family.types)
        if (type.name == model_type) return &type;
    return nullptr;
}

}  // namespace

StackIndex HfConfig::stack_index() const { return encodes ? StackIndex::encoder : family->stack; }

const Stack& HfConfig::stack() const {
    return stack_index() == StackIndex::encoder ? source.config.encoder : source.config.decoder;
}

Stack& HfConfig::stack() {
    return stack_index() == StackIndex::encoder ? source.config.encoder : source.config.decoder;
}

const Family* find_family(const std::string& model_type) {
    for (const Family* family : kFamilies)
        if (find_type(*family, model_type)) return family;
    return nullptr;
}

Fields with_defaults(const Fields& fields, const Family& family, const std::string& model_type) {
    const ModelType* type = find_type(family, model_type);
    SortedJson written = fields.json();
    if (const auto rope = written.find("rope_parameters"); rope != written.end() && rope->empty())
        written.erase(rope);  // to a class null, or an object without members, is not there
    const Fields plain(std::move(written), fields.place());
    return type && type->defaults ? plain.or_else(read_sorted_json(type->defaults)) : plain;
}

TensorPlace place_of(std::span<const TensorName> names, Role role) {
    const auto found = std::ranges::find(names, role, &TensorName::role);
    if (found != names.end()) return {found->name, found->within, found->gate};
    const auto before = static_cast<Role>(static_cast<std::uint16_t>(role) - 1);
    if (role != Role::output_bias && role_word(role) == std::string(role_word(before)) + "_bias") {
        TensorPlace place = place_of(names, before);
        for (std::string* of_weight : {&place.name, &place.gate})
            if (of_weight->ends_with(".weight")) of_weight->replace(of_weight->size() - 6, 6, "bias");
        return place;
    }
    if (role != Role::key && role != Role::value) return {};
    TensorPlace place = place_of(names, Role::query);
    return place.within == Within::alone ? TensorPlace{} : place;
}

std::string alternatives(const std::vector<std::string>& names) {
    constexpr std::size_t kMostBytes = 400;  // of a refusal, which is cut behind 600
    std::string words = names.front();
    for (std::size_t i = 1; i < names.size(); ++i) {
        if (words.size() > kMostBytes)
            return words + " or one of " + std::to_string(names.size() - i) + " more in docs/families.md";
        words += (i + 1 == names.size() ? " or " : ", ") + names[i];
    }
    return words;
}

std::vector<std::string> known_model_types() {
    std::vector<std::string> types;
    for (const Family* family : kFamilies)
        for (const ModelType& type : family->types) types.emplace_back(type.name);
    return types;
}

}  // namespace fovea
