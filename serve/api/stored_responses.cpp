#include "serve/api/stored_responses.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <random>
#include <utility>

namespace fovea::serve {

bool StoredResponses::begin(StoredResponse response) {
    if (response.items.size() > kMostConversation || bytes_of(response) > most_) return false;
    const std::lock_guard lock(changes_);
    if (places_.contains(response.id)) return false;
    const auto user = users_.try_emplace(response.user).first;
    std::list<StoredResponse>& kept = user->second.kept;
    kept.push_back(std::move(response));
    count(places_.emplace(kept.back().id, Place{user, std::prev(kept.end())}).first->second, 0);
    return true;
}

void StoredResponses::finish(const std::string& id, std::string response, std::string_view items) {
    const std::lock_guard lock(changes_);
    const auto found = places_.find(id);
    if (found == places_.end()) return;
    StoredResponse& kept = *found->second.response;
    if (kept.items.size() + items.size() > kMostConversation) return erase(found);
    const std::uint64_t before = bytes_of(kept);
    if (items.size() > std::string_view("[]").size()) {
        kept.items.back() = ',';
        kept.items += items.substr(1);
    }
    kept.response = std::move(response);
    count(found->second, before);
}

/// Counts what a response has grown by, and lets others go where that is too much.
void StoredResponses::count(const Place& place, std::uint64_t before) {
    const std::uint64_t more = bytes_of(*place.response) - before;
    place.user->second.n_bytes += more;
    n_bytes_ += more;
    while (n_bytes_ > most_) {
        const auto fewer = [](const auto& a, const auto& b) { return a.second.n_bytes < b.second.n_bytes; };
        const User& heaviest = std::max_element(users_.begin(), users_.end(), fewer)->second;
        erase(places_.find(heaviest.kept.front().id));
    }
}

std::optional<StoredResponse> StoredResponses::find(const std::string& id, const std::string& user) const {
    const std::lock_guard lock(changes_);
    const auto found = places_.find(id);
    if (found == places_.end() || found->second.user->first != user) return std::nullopt;
    if (found->second.response->response.empty()) return std::nullopt;
    return *found->second.response;
}

bool StoredResponses::remove(const std::string& id, const std::string& user) {
    const std::lock_guard lock(changes_);
    const auto found = places_.find(id);
    if (found == places_.end() || found->second.user->first != user) return false;
    erase(found);
    return true;
}

/// With what the containers take beside the texts' characters.
std::uint64_t StoredResponses::bytes_of(const StoredResponse& response) {
    constexpr std::uint64_t kBeside = 768;
    return kBeside + 2 * response.id.capacity() + 2 * response.user.capacity() + response.response.capacity() +
           response.items.capacity();
}

void StoredResponses::erase(std::unordered_map<std::string, Place>::iterator found) {
    const Place place = found->second;
    const std::uint64_t n = bytes_of(*place.response);
    places_.erase(found);
    n_bytes_ -= n;
    place.user->second.n_bytes -= n;
    place.user->second.kept.erase(place.response);
    if (place.user->second.kept.empty()) users_.erase(place.user);
}

std::string new_response_id() {
    std::random_device random;
    std::string id = "resp_";
    for (int i = 0; i < 4; ++i) {
        char digits[9];
        std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(random()));
        id += digits;
    }
    return id;
}

}  // namespace fovea::serve
