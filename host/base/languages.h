// Languages as people write them, and the codes that models know them by.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace fovea {

/// A language's codes: "de" or, of the few that have no such, three letters; "deu" and the script "Latn" of NLLB's names.
struct KnownLanguage {
    std::string_view code, three;
    std::string script, region;  ///< region: "AT" of "de-AT"; empty if there is none
};

/// "German", "DE", "de-AT", "deu", "ger", "zh-Hant": the case of letters does not matter. None: not known.
[[nodiscard]] std::optional<KnownLanguage> find_known_language(std::string_view written);

}  // namespace fovea
