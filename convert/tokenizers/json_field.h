// A value of a JSON file that knows its place.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace fovea {

/// A value of a tokenizer.json and its place, for errors.
class JsonField {
public:
    JsonField(const nlohmann::json& value, const std::string& file_name, std::string path)
        : value_(&value), file_name_(&file_name), path_(std::move(path)) {}

    [[nodiscard]] bool is_null() const;
    [[nodiscard]] bool is_zero() const;                                ///< the number 0
    [[nodiscard]] JsonField operator[](const std::string& key) const;  ///< null if there is none
    [[nodiscard]] std::vector<JsonField> elements() const;
    [[nodiscard]] std::string text() const;
    [[nodiscard]] std::string text_or(const std::string& otherwise) const;
    [[nodiscard]] bool flag_or(bool otherwise) const;
    [[nodiscard]] std::uint32_t id() const;
    [[nodiscard]] std::uint32_t id_or(std::uint32_t otherwise) const;
    [[noreturn]] void refuse(const std::string& wanted) const;  ///< one line: file, path, wanted, had
    [[nodiscard]] std::string place() const { return *file_name_ + ": " + path_; }

private:
    const nlohmann::json* value_;
    const std::string* file_name_;
    std::string path_;
};

/// A token's text: the value, or an object's content; `otherwise` if that is no text.
[[nodiscard]] std::string token_text(const nlohmann::json& token, const std::string& otherwise = {});

}  // namespace fovea
