// Parts of JSON's texts that are large, such as tokenizers.
#pragma once
#include <functional>

#include "host/base/json.h"

namespace fovea {

/// Whether a member is read. `depth`: 1 for one of the outermost object, and one more for each array or object around it.
using WantedMember = std::function<bool(std::size_t depth, std::string_view name)>;

/// The value that a text is, as read_sorted_json has it, without the members that are not wanted, of which nothing is kept. The time
/// grows with the text's bytes, whatever they are.
[[nodiscard]] SortedJson read_wanted(std::string_view text, const WantedMember& wanted, JsonFault* fault = nullptr);

}  // namespace fovea
