// The tools that an answer's calls may name, as far as reading the calls needs them.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/base/json.h"

namespace fovea {

/// Whether a schema takes texts and nothing else.
[[nodiscard]] bool is_of_text(const Json& schema);

/// Names of functions, and of their arguments that are texts. Copies share them.
class KnownTools {
public:
    KnownTools() = default;
    /// tools: an array of OpenAI's objects; null: none.
    KnownTools(const Json& tools);  // NOLINT(google-explicit-constructor): what is known of any tools

    [[nodiscard]] bool has(std::string_view function) const { return find(function); }
    /// Whether an argument takes texts and nothing else.
    [[nodiscard]] bool is_text(std::string_view function, const std::string& argument) const;
    [[nodiscard]] std::size_t n_bytes() const;

private:
    struct Tool {
        std::string name;
        std::vector<std::string> texts;  // in order
    };
    [[nodiscard]] const Tool* find(std::string_view function) const;

    std::shared_ptr<const std::vector<Tool>> tools_;  // null: none
};

}  // namespace fovea
