#include "convert/families/family.h"

#include "convert/sources/whisper.h"

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

std::string known_model_types() {
    std::vector<std::string> types;
    for (const Family* family : kFamilies)
        for (const ModelType& type : family->types) types.emplace_back(type.name);
    types.emplace_back(kWhisperType);  // which has a reader of its own
    return alternatives(types);
}

}  // namespace fovea
