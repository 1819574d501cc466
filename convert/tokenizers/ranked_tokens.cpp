#include "convert/tokenizers/ranked_tokens.h"

#include <charconv>

#include "convert/formats/text_file.h"
#include "convert/tokenizers/tokenizer_spelling.h"
#include "host/base/error.h"
#include "host/base/json.h"

namespace fovea {
namespace {

constexpr std::size_t kMostTokenBytes = 1024;

/// A byte's number in base64's alphabet; 64 for another.
std::uint32_t sextet(char c) {
    constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t at = kAlphabet.find(c);
    return at == kAlphabet.npos ? 64 : static_cast<std::uint32_t>(at);
}

/// Base64 (RFC 4648); false for what is none.
bool decode(std::string_view text, std::string& bytes) {
    bytes.clear();
    while (text.ends_with('=')) text.remove_suffix(1);
    std::uint32_t bits = 0, n_bits = 0;
    for (const char c : text) {
        if (sextet(c) == 64) return false;
        bits = bits << 6 | sextet(c);
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        bytes += static_cast<char>(bits >> n_bits & 0xff);
    }
    return true;
}

std::string spelling_of(std::string_view bytes) {
    std::string spelling;
    for (const char byte : bytes) spelling += byte_spelling(static_cast<std::uint8_t>(byte));
    return spelling;
}

}  // namespace

RankedTokens::RankedTokens(std::vector<std::string> tokens, std::string place)
    : tokens_(std::move(tokens)), place_(std::move(place)) {
    for (std::uint32_t id = 0; id < tokens_.size(); ++id)
        if (tokens_[id].empty() || tokens_[id].size() > kMostTokenBytes || !ids_.emplace(tokens_[id], id).second)
            throw host::Error(place_ + ": token " + std::to_string(id) + ": expected 1 to " +
                              std::to_string(kMostTokenBytes) + " bytes that no other has, got others");
    for (int byte = 0; byte < 256; ++byte)
        if (!ids_.count(std::string(1, static_cast<char>(byte))))
            throw host::Error(place_ + ": expected a token for each byte, got none for " + std::to_string(byte));
}

RankedTokens RankedTokens::read(std::string_view tiktoken, const std::string& file_name) {
    std::vector<std::string> tokens;
    while (!tiktoken.empty()) {
        const std::string_view line = take_line(tiktoken);
        if (line.empty()) continue;
        const std::size_t space = line.find(' ');
        std::string bytes;
        std::uint32_t rank = 0;
        const bool has_rank =
            space != line.npos &&
            std::from_chars(line.data() + space + 1, line.data() + line.size(), rank).ptr == line.data() + line.size();
        if (!has_rank || rank != tokens.size() || !decode(line.substr(0, space), bytes))
            throw host::Error(file_name + ": line " + std::to_string(tokens.size() + 1) +
                              ": expected a token in base64 and the rank " + std::to_string(tokens.size()) + ", got " +
                              std::string(line.substr(0, 100)));
        tokens.push_back(std::move(bytes));
    }
    return {std::move(tokens), file_name};
}

std::vector<std::uint32_t> RankedTokens::word(std::string_view bytes, std::uint32_t end) const {
    std::vector<std::string_view> parts;
    for (std::size_t i = 0; i < bytes.size(); ++i) parts.push_back(bytes.substr(i, 1));
    for (;;) {
        std::uint32_t best = end;
        std::size_t at = 0;
        for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
            const auto found = ids_.find(std::string_view(parts[i].data(), parts[i].size() + parts[i + 1].size()));
            if (found != ids_.end() && found->second < best) best = found->second, at = i;
        }
        if (best == end) break;
        parts[at] = {parts[at].data(), parts[at].size() + parts[at + 1].size()};
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    std::vector<std::uint32_t> ids;
    for (const std::string_view part : parts) ids.push_back(ids_.find(part)->second);
    return ids;
}

// A token of several bytes is the merge of the two that its bytes come to by merges of lower ranks.
std::vector<std::byte> RankedTokens::section(const std::map<std::string, std::uint32_t>& special,
                                             const TokenizerFacts& facts, std::vector<std::string>& notes) const {
    SortedJson vocabulary = SortedJson::object(), merges = SortedJson::array(), added = SortedJson::array();
    for (std::uint32_t id = 0; id < size(); ++id) {
        vocabulary[spelling_of(tokens_[id])] = id;
        if (tokens_[id].size() < 2) continue;
        const std::vector<std::uint32_t> parts = word(tokens_[id], id);
        if (parts.size() != 2)
            throw host::Error(place_ + ": token " + std::to_string(id) +
                              ": expected two of lower ranks that make it, got " + std::to_string(parts.size()));
        merges.push_back(SortedJson::array({spelling_of(tokens_[parts[0]]), spelling_of(tokens_[parts[1]])}));
    }
    for (const auto& [name, id] : special)
        added.push_back({{"id", id}, {"content", name}, {"normalized", false}, {"special", true}});
    const SortedJson cut = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
    const SortedJson whole = {{"version", "1.0"},
                              {"added_tokens", added},
                              {"normalizer", nullptr},
                              {"pre_tokenizer", cut},
                              {"post_processor", nullptr},
                              {"decoder", {{"type", "ByteLevel"}}},
                              {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
    return tokenizer_section_from_json(json_text(whole), place_, facts, notes);
}

}  // namespace fovea
