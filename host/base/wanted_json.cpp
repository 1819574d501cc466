#include "host/base/wanted_json.h"

#include <utility>
#include <vector>

#include "host/base/json_builder.h"

namespace fovea {
namespace {

/// Builds a value of the members that are wanted. The library's parser with a callback looks through a list or an object whenever an
/// object within it ends.
class WantedBuilder final : public JsonValues<WantedBuilder> {
public:
    WantedBuilder(const WantedMember& wanted, JsonFault& fault) : JsonValues(fault), wanted_(wanted) {}

    SortedJson value;

    template<class Given>
    bool add(Given&& given) {
        if (!skips_)
            (void)place(std::forward<Given>(given));
        else if (n_skipped_ == 0)
            skips_ = false;
        return true;
    }
    bool key(string_t& name) override {
        if (skips_) return true;
        skips_ = !wanted_(open_.size(), name);
        if (!skips_) member_ = &(*open_.back())[std::move(name)];
        return true;
    }
    bool start_object(std::size_t) override { return begin(SortedJson::value_t::object); }
    bool start_array(std::size_t) override { return begin(SortedJson::value_t::array); }
    bool end_object() override { return end_array(); }
    bool end_array() override {
        if (!skips_)
            open_.pop_back();
        else if (--n_skipped_ == 0)
            skips_ = false;
        return true;
    }

private:
    bool begin(SortedJson::value_t type) {
        if (skips_)
            ++n_skipped_;
        else
            open_.push_back(&place(type));
        return true;
    }
    SortedJson& place(SortedJson given) {
        if (open_.empty()) return value = std::move(given);
        if (open_.back()->is_array())
            return open_.back()->get_ref<SortedJson::array_t&>().emplace_back(std::move(given));
        return *member_ = std::move(given);
    }

    const WantedMember& wanted_;
    std::vector<SortedJson*> open_;  // from the outermost; only the last one grows, so their places hold
    SortedJson* member_ = nullptr;   // whose value comes next
    bool skips_ = false;             // a value that is not wanted comes, or
    std::size_t n_skipped_ = 0;      // so many of its arrays and objects are open
};

}  // namespace

SortedJson read_wanted(std::string_view text, const WantedMember& wanted, JsonFault* fault) {
    JsonFault found;
    WantedBuilder builder(wanted, found);
    follow_json(text, builder);
    if (fault) *fault = found;
    return found.words.empty() ? std::move(builder.value) : SortedJson(SortedJson::value_t::discarded);
}

}  // namespace fovea
