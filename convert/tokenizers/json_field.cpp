#include "convert/tokenizers/json_field.h"

#include "engine/format/format.h"
#include "host/base/error.h"
#include "host/base/json.h"

namespace fovea {

bool JsonField::is_null() const { return value_->is_null(); }

bool JsonField::is_zero() const { return value_->is_number() && value_->get<double>() == 0; }

JsonField JsonField::operator[](const std::string& key) const {
    static const SortedJson null;
    if (!value_->is_object()) refuse("an object");
    const auto found = value_->find(key);
    return {found == value_->end() ? null : *found, *file_name_, path_.empty() ? key : path_ + "." + key};
}

std::vector<JsonField> JsonField::elements() const {
    if (!value_->is_array()) refuse("an array");
    std::vector<JsonField> result;
    for (const SortedJson& element : *value_)
        result.emplace_back(element, *file_name_, path_ + "[" + std::to_string(result.size()) + "]");
    return result;
}

std::string JsonField::text() const {
    if (!value_->is_string()) refuse("a string");
    return value_->get<std::string>();
}

std::string JsonField::text_or(const std::string& otherwise) const { return is_null() ? otherwise : text(); }

bool JsonField::flag_or(bool otherwise) const {
    if (is_null()) return otherwise;
    if (!value_->is_boolean()) refuse("true or false");
    return value_->get<bool>();
}

std::uint32_t JsonField::id() const {
    if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() >= kNoId) refuse("a number below 2^32 - 1");
    return value_->get<std::uint32_t>();
}

std::uint32_t JsonField::id_or(std::uint32_t otherwise) const { return is_null() ? otherwise : id(); }

void JsonField::refuse(const std::string& wanted) const {
    constexpr std::size_t kMostShown = 300;
    std::string had = value_->dump();
    if (had.size() > kMostShown) had = "a value of " + std::to_string(had.size()) + " characters";
    throw host::Error(*file_name_ + ": " + path_ + ": expected " + wanted + ", got " + had);
}

std::string token_text(const SortedJson& token, const std::string& otherwise) {
    const SortedJson text = token.is_object() ? token.value("content", SortedJson()) : token;
    return text.is_string() ? text.get<std::string>() : otherwise;
}

}  // namespace fovea
