// Responses that clients may ask for again or go on from, within a bound of bytes.
#pragma once
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace fovea::serve {

inline constexpr std::size_t kMostConversation = 1 << 20;  // bytes of its items

struct StoredResponse {
    std::string id, user;
    std::string items = {};     ///< all up to its end, as JSON; the system's text is left out
    std::size_t n_input = 0;    ///< items before its own
    std::string response = {};  ///< as JSON; empty: it is still being made
};

/// Each is its user's alone. Where there is no room, the oldest of the user who has most bytes goes. Any thread may call.
class StoredResponses {
public:
    /// Bytes of all of them together.
    explicit StoredResponses(std::uint64_t most) : most_(most) {}

    [[nodiscard]] std::uint64_t most_bytes() const { return most_; }
    /// One that is being made, with the items before its own. Whether it is kept: not where it is too long.
    [[nodiscard]] bool begin(StoredResponse response);
    /// It is there, and these items are its own. One that had to go is not kept.
    void finish(const std::string& id, std::string response, std::string_view items);
    /// Those that are there.
    [[nodiscard]] std::optional<StoredResponse> find(const std::string& id, const std::string& user) const;
    /// Whether there was one.
    bool remove(const std::string& id, const std::string& user);

private:
    struct User {
        std::list<StoredResponse> kept;  // the oldest first
        std::uint64_t n_bytes = 0;
    };
    using Users = std::map<std::string, User>;
    struct Place {
        Users::iterator user;
        std::list<StoredResponse>::iterator response;
    };
    static std::uint64_t bytes_of(const StoredResponse& response);
    void count(const Place& place, std::uint64_t before);
    void erase(std::unordered_map<std::string, Place>::iterator found);

    const std::uint64_t most_;
    mutable std::mutex changes_;
    Users users_;
    std::unordered_map<std::string, Place> places_;  // by id
    std::uint64_t n_bytes_ = 0;
};

/// An id that nobody can guess.
[[nodiscard]] std::string new_response_id();

}  // namespace fovea::serve
