#include "convert/families/family.h"

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
    return type && type->defaults ? fields.or_else(nlohmann::json::parse(type->defaults)) : fields;
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
