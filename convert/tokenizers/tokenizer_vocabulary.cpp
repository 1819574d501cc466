#include "convert/tokenizers/tokenizer_vocabulary.h"

#include "host/base/error.h"
#include "host/base/json.h"

namespace fovea {
namespace {

std::string in_json(std::string_view text) { return Json(text).dump(); }

/// Follows the parser to model.vocab or to model.merges, whichever is wanted, and passes over everything else.
class VocabularyReader final : public nlohmann::json_sax<Json> {
public:
    enum class Part { vocab, merges };

    VocabularyReader(Part part, Vocabulary& vocabulary, const std::string& file_name, std::uint32_t max_tokens)
        : part_(part), vocabulary_(vocabulary), file_name_(file_name), max_tokens_(max_tokens) {}

    bool start_object(std::size_t) override {
        if (in_part() && (part_ == Part::merges || depth_ > 2)) refuse_value("an object");
        ++depth_;
        return true;
    }
    bool end_object() override {
        --depth_;
        return true;
    }
    bool start_array(std::size_t) override {
        if (in_part() && (depth_ > 3 || (part_ == Part::vocab && depth_ == 3 && !scored_))) refuse_value("an array");
        if (in_part() && part_ == Part::vocab && depth_ == 2) scored_ = true;
        ++depth_;
        return true;
    }
    bool end_array() override {
        --depth_;
        if (in_part() && part_ == Part::merges && depth_ == 3) add_merge();
        if (in_part() && part_ == Part::vocab && depth_ == 3) add_scored();
        if (depth_ == 2) scored_ = false;
        return true;
    }
    bool key(std::string& name) override {
        if (depth_ == 1) in_model_ = name == "model";
        if (depth_ == 2) in_key_ = name == (part_ == Part::vocab ? "vocab" : "merges");
        if (depth_ == 3 && in_part()) token_ = name;
        return true;
    }
    bool string(std::string& text) override {
        if (!in_part()) return true;
        if (scored_ && depth_ == 4 && n_in_pair_++ == 0) {
            token_ = text;
            return true;
        }
        if (part_ == Part::vocab || depth_ < 3) refuse_value(in_json(text));
        if (depth_ == 4)
            pair_.push_back(text);
        else
            split_merge(text);
        return true;
    }
    bool number_unsigned(std::uint64_t id) override {
        if (!in_part()) return true;
        if (scored_) return add_score(static_cast<double>(id), std::to_string(id));
        if (part_ == Part::merges || depth_ != 3) refuse_value(std::to_string(id));
        add_token(id);
        return true;
    }
    bool null() override { return refuse_other("null"); }
    bool boolean(bool value) override { return refuse_other(value ? "true" : "false"); }
    bool number_integer(std::int64_t value) override {
        return in_part() && scored_ ? add_score(static_cast<double>(value), std::to_string(value))
                                    : refuse_other(std::to_string(value));
    }
    bool number_float(double value, const std::string& text) override {
        return in_part() && scored_ ? add_score(value, text) : refuse_other(text);
    }
    bool binary(Json::binary_t&) override { return refuse_other("binary"); }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
        throw host::Error(file_name_ + ": not JSON: " + error.what());
    }

private:
    // Depth 1 is inside the file's object, 2 inside its model, 3 inside the vocabulary or the merges.
    [[nodiscard]] bool in_part() const { return in_model_ && in_key_ && depth_ >= 2; }

    [[noreturn]] void refuse(const std::string& field, const std::string& rest) const {
        throw host::Error(file_name_ + ": model." + field + ": " + rest);
    }
    [[noreturn]] void refuse_value(const std::string& had) const {
        if (part_ == Part::vocab)
            refuse("vocab", "expected an object of tokens and their ids, or a list of tokens with scores, got " + had);
        refuse("merges", "expected an array of pairs of tokens, got " + had);
    }
    bool refuse_other(const std::string& had) const {
        if (in_part()) refuse_value(had);
        return true;
    }

    void add_token(std::uint64_t id) {
        if (id >= max_tokens_)
            refuse("vocab", "expected ids below the model's vocab_size " + std::to_string(max_tokens_) + ", got " +
                                std::to_string(id) + " for " + in_json(token_));
        const auto id32 = static_cast<std::uint32_t>(id);
        if (vocabulary_.find(token_) != kNoId)
            refuse("vocab", "expected each token once, got " + in_json(token_) + " again");
        if (!vocabulary_.spellings.set(id32, token_))
            refuse("vocab", "expected each id once, got " + std::to_string(id) + " again for " + in_json(token_));
        vocabulary_.ids.emplace(hash_bytes(token_.data(), token_.size()), id32);
    }

    bool add_score(double score, const std::string& text) {
        if (depth_ != 4 || n_in_pair_++ != 1) refuse_value(text);
        score_ = score;
        return true;
    }
    void add_scored() {
        if (n_in_pair_ != 2) refuse_value("a list of " + std::to_string(n_in_pair_));
        n_in_pair_ = 0;
        add_token(vocabulary_.scores.size());
        vocabulary_.scores.push_back(score_);
    }

    /// The older form, one string: "left right".
    void split_merge(const std::string& text) {
        if (text.rfind("#version", 0) == 0) return;
        const std::size_t space = text.find(' ');
        if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
            refuse("merges", "expected two tokens with a space between, got " + in_json(text));
        pair_ = {text.substr(0, space), text.substr(space + 1)};
        add_merge();
    }

    void add_merge() {
        const std::size_t rank = vocabulary_.merges.size();
        if (pair_.size() != 2) refuse("merges", "expected two tokens, got " + std::to_string(pair_.size()));
        const std::string merged = pair_[0] + pair_[1];
        const auto id_of = [&](const std::string& token) {
            const std::uint32_t id = vocabulary_.find(token);
            if (id == kNoId)
                refuse("merges", "expected tokens of the vocabulary, got " + in_json(token) + " in number " +
                                     std::to_string(rank));
            return id;
        };
        vocabulary_.merges.push_back(
            {id_of(pair_[0]), id_of(pair_[1]), static_cast<std::uint32_t>(rank), id_of(merged)});
        pair_.clear();
    }

    Part part_;
    Vocabulary& vocabulary_;
    const std::string& file_name_;
    std::uint32_t max_tokens_;
    int depth_ = 0;
    bool in_model_ = false, in_key_ = false, scored_ = false;  // scored_: inside a list of tokens with scores
    int n_in_pair_ = 0;
    double score_ = 0;
    std::string token_;
    std::vector<std::string> pair_;
};

}  // namespace

std::uint32_t Vocabulary::find(std::string_view spelling) const {
    const auto [begin, end] = ids.equal_range(hash_bytes(spelling.data(), spelling.size()));
    for (auto i = begin; i != end; ++i)
        if (spellings.at(i->second) == spelling) return i->second;
    return kNoId;
}

Vocabulary read_vocabulary(std::span<const char> json_text, const std::string& file_name, std::uint32_t max_tokens) {
    Vocabulary vocabulary;
    // Reads the text twice, since the merges may come before the vocabulary that they name.
    for (const VocabularyReader::Part part : {VocabularyReader::Part::vocab, VocabularyReader::Part::merges}) {
        VocabularyReader reader(part, vocabulary, file_name, max_tokens);
        follow_json({json_text.data(), json_text.size()}, reader);
        if (vocabulary.spellings.size() == 0)
            throw host::Error(file_name + ": model.vocab: expected an object of tokens and their ids, got none");
    }
    return vocabulary;
}

}  // namespace fovea
