// Members of objects within requests for texts: none that no row of members.inc has is ignored in silence.
#include <algorithm>
#include <iterator>
#include <sstream>

#include "serve/api/text_fields.h"

namespace fovea::serve {
namespace {

const MemberRow kMembers[] = {
#include "serve/api/members.inc"
};

std::vector<std::string> names_in(const char* text) {
    std::istringstream stream(text);
    return {std::istream_iterator<std::string>(stream), {}};
}

/// One row, and what was found of it.
struct MemberSearch {
    std::vector<std::string> obeyed, known;  ///< `known` has the others, too, and the names that were told already
    std::string& ignored;

    MemberSearch(const MemberRow& row, std::string& ignored_) : obeyed(names_in(row.obeyed)), ignored(ignored_) {
        known = names_in(row.ignored);
        known.insert(known.end(), obeyed.begin(), obeyed.end());
    }

    /// The objects at `path` within a value, which itself is at `place`. Values of other kinds are their readers' to refuse.
    void look(const Json& value, std::string_view path, const std::string& place) {
        if (!value.is_object()) return;
        if (path.empty()) return check(value, place);
        const std::size_t end = std::min(path.find('.'), path.size());
        std::string name(path.substr(0, end));
        const std::string_view rest = path.substr(std::min(end + 1, path.size()));
        const bool is_list = name.ends_with("[]");
        if (is_list) name.resize(name.size() - 2);
        const auto found = value.find(name);
        if (found == value.end()) return;
        if (!place.empty()) name = place + '.' + name;
        if (!is_list) return look(*found, rest, name);
        for (std::size_t i = 0; found->is_array() && i < found->size(); ++i) look((*found)[i], rest, at(name, i));
    }

    void check(const Json& object, const std::string& place) {
        for (const auto& [name, value] : object.items()) {
            if (value.is_null() || std::ranges::find(known, name) != known.end()) continue;
            add_unknown(Fields(object, place), name, obeyed, ignored);
            known.push_back(name);
        }
    }
};

}  // namespace

std::span<const MemberRow> member_rows() { return kMembers; }

void check_members(const Json& body, unsigned of, std::string& ignored) {
    for (const MemberRow& row : kMembers)
        if (row.of & of) MemberSearch(row, ignored).look(body, row.place, "");
}

}  // namespace fovea::serve
