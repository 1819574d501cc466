// What every verb is made with.
#pragma once
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/host/opened.h"
#include "host/base/error.h"
#include "host/base/words.h"
#include "tools/options/opened.h"
#include "tools/options/options.h"
#include "tools/terminal/print.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/verbs.h"

namespace fovea {

/// Adds a verb to the program: `declare` adds its options, and `act` does what the verb does once they are read.
template<class Options>
void add_verb(CLI::App& app, const char* name, const char* description, void (*act)(Options&),
              void (*declare)(const Verb& verb, Options& o)) {
    const auto options = std::make_shared<Options>();
    const Verb verb(app, name, description);
    declare(verb, *options);
    verb.set_action([options, act] { act(*options); });
}

/// Settles what every verb takes, and opens its model, where --verify says so with its checksums.
[[nodiscard]] inline host::Opened open_model(CommonOptions& common, const std::string& path) {
    settle(common);
    return open_path(path, common.opening());
}

}  // namespace fovea
