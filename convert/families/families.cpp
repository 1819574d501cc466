#include <vector>

#include "convert/families/family.h"
#include "convert/whisper.h"

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

std::string known_model_types() {
    std::vector<std::string> types;
    for (const Family* family : kFamilies)
        for (const ModelType& type : family->types) types.emplace_back(type.name);
    types.emplace_back(kWhisperType);  // which has a reader of its own
    std::string words;
    for (std::size_t i = 0; i < types.size(); ++i)
        words += (i == 0 ? "" : i + 1 == types.size() ? " or " : ", ") + types[i];
    return words;
}

}  // namespace fovea
