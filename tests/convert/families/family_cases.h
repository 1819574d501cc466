// Golden models of families, and what converting one says after a change of its config.json.
#pragma once
#include <doctest/doctest.h>

#include "host/base/json.h"
#include "tests/support/convert_fixtures.h"

namespace fovea::testing {

inline fs::path golden_families() { return fs::path(FOVEA_GOLDEN_DIR) / "families"; }

/// What converting a family's model says after a change of its config.json; "" where it does not refuse.
inline std::string line_of(const char* family, const std::function<void(SortedJson&)>& edit) {
    TemporaryFolder folder;
    fs::copy(golden_families() / family, folder / "model");
    edit_json(folder / "model/config.json", edit);
    ConvertOptions options;
    options.source = folder / "model";
    options.output = folder / "out.fovea";
    return refusal_of([&] { convert_source(options); });
}

inline void check_refused(const char* family, const char* field, const SortedJson& value, const char* words) {
    const std::string line = line_of(family, [&](SortedJson& json) { json[field] = value; });
    CAPTURE(family);
    CAPTURE(line);
    CHECK(contains(line, std::string("config.json: ") + field + ": expected "));
    CHECK(contains(line, words));
}

}  // namespace fovea::testing
