#include <algorithm>
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

}  // namespace

const Family* find_family(const std::string& model_type) {
    for (const Family* family : kFamilies)
        if (std::find(family->types.begin(), family->types.end(), model_type) != family->types.end()) return family;
    return nullptr;
}

std::string known_model_types() {
    std::vector<std::string> types;
    for (const Family* family : kFamilies) types.insert(types.end(), family->types.begin(), family->types.end());
    types.emplace_back(kWhisperType);  // which has a reader of its own
    std::string words;
    for (std::size_t i = 0; i < types.size(); ++i)
        words += (i == 0 ? "" : i + 1 == types.size() ? " or " : ", ") + types[i];
    return words;
}

}  // namespace fovea
