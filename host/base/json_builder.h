// What the builders of JSON's values share.
#pragma once
#include <utility>

#include "host/base/json.h"

namespace fovea {

/// The library's complaint, at a byte of the text, as a line of printable characters.
[[nodiscard]] JsonFault fault_of(std::size_t position, const nlohmann::detail::exception& error);

/// A reader of a text's parts that gives Builder::add each value but arrays and objects, and `fault` where the text is no JSON.
template<class Builder>
class JsonValues : public nlohmann::json_sax<Json> {
public:
    explicit JsonValues(JsonFault& fault) : fault_(fault) {}

    bool null() final { return add(nullptr); }
    bool boolean(bool given) final { return add(given); }
    bool number_integer(number_integer_t given) final { return add(given); }
    bool number_unsigned(number_unsigned_t given) final { return add(given); }
    bool number_float(number_float_t given, const string_t&) final { return add(given); }
    bool string(string_t& given) final { return add(std::move(given)); }
    bool binary(binary_t&) final { return false; }  // no text has it
    bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) final {
        fault_ = fault_of(position, error);
        return false;
    }

protected:
    JsonFault& fault_;

private:
    template<class Given>
    bool add(Given&& given) {
        return static_cast<Builder&>(*this).add(std::forward<Given>(given));
    }
};

}  // namespace fovea
