// Where the references of a schema lead.
#pragma once
#include <span>
#include <string>
#include <utility>

#include "host/grammar/json_merge.h"

namespace fovea::grammar {

/// A schema whose references are pointers, as far as its identifiers and anchors tell where they lead, without words that
/// only its readers see, such as titles.
[[nodiscard]] Json with_plain_references(Json root);

/// Where a $ref leads, as a JSON pointer. Throws GrammarError if that is not within the schema.
[[nodiscard]] std::string pointer_of(const Json& reference, const std::string& place);

class References {
public:
    explicit References(const Json& root);

    /// What a pointer names in the whole schema. Throws GrammarError where nothing is there.
    [[nodiscard]] const Json& target(const std::string& pointer, const std::string& place) const;

    /// A schema without references at its top: itself, what it leads to, or `made` of what stands beside references.
    [[nodiscard]] const Json& resolved(const Json& given, Json& made, const std::string& place);
    [[nodiscard]] Json expanded(const Json& given, const std::string& place);

    /// Where what a refusal speaks of stands in the whole schema, if in a part of one that was merged. A last step that is
    /// nowhere, for it was made of others, follows as a word.
    [[nodiscard]] std::string place_of(const std::string& place) const;

    /// References may lead to the same schemas again and again, each time twice as many, and conditions that do not exclude one
    /// another double alternatives: the work is bounded by the values of schemas that are copied.
    void count_copied(const Json& schema, const std::string& place);
    void count_rewritten(const std::string& place) { count(kRewritten, place); }
    /// Lets so many more be copied, if not fewer. Returns the limit before, for set_limit.
    [[nodiscard]] std::size_t limit_copied(std::size_t n) {
        return std::exchange(most_copied_, std::min(most_copied_, n_copied_ + n));
    }
    void set_limit(std::size_t most) { most_copied_ = most; }

private:
    void count(std::size_t n_values, const std::string& place);
    struct Search;
    [[nodiscard]] bool find(const Json& at, std::size_t i, const std::string& place, int n_parts, Search& search) const;

    const Json& root_;
    Json top_;  // the root without the schemas that only references lead to
    static constexpr std::size_t kMostCopied = 2'000'000, kRewritten = 20;
    std::size_t n_copied_ = 0, most_copied_ = kMostCopied;
};

}  // namespace fovea::grammar
