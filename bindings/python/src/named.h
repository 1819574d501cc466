// Dictionaries of keyword arguments, read by tables of the names they may have.
#pragma once
#include <nanobind/nanobind.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace fovea::python {

namespace nb = nanobind;

/// A name, and what reads its value: false where the value does not fit.
struct Named {
    std::string_view name;
    std::function<bool(nb::handle)> read;
};

/// What reads a value into `field`. Without `converts` only a value of the field's own type fits.
template<typename T>
[[nodiscard]] std::function<bool(nb::handle)> into(T& field, bool converts = true) {
    return [&field, converts](nb::handle value) { return nb::try_cast(value, field, converts); };
}

/// Reads each value as the table says. For the first whose name is unknown or whose value does not fit it calls
/// refuse(name, value), which throws.
template<typename Refuse>
void read_named(const nb::dict& given, std::span<const Named> known, const Refuse& refuse) {
    for (const auto& [key, value] : given) {
        const auto name = nb::cast<std::string>(key);
        const auto found = std::find_if(known.begin(), known.end(), [&](const Named& one) { return one.name == name; });
        if (found == known.end() || !found->read(value)) refuse(name, value);
    }
}

}  // namespace fovea::python
