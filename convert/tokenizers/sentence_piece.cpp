#include "convert/tokenizers/sentence_piece.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "convert/tokenizers/tokenizer_spelling.h"
#include "convert/tokenizers/tokenizer_steps.h"
#include "engine/format/utf8.h"
#include "host/base/error.h"

namespace fovea {
namespace {

/// A message of the wire format, field by field.
class Message {
public:
    Message(std::string_view bytes, const std::string& file_name) : rest_(bytes), file_name_(file_name) {}

    /// Moves to the next field. False at the end.
    bool next() {
        if (rest_.empty()) return false;
        const std::uint64_t tag = varint();
        number_ = tag >> 3;
        kind_ = static_cast<std::uint32_t>(tag & 7);
        switch (kind_) {
            case 0: value_ = varint(); break;
            case 1: take(8); break;
            case 2: take(varint()); break;
            case 5: take(4); break;
            default: refuse("a field of a kind 0, 1, 2 or 5, got " + std::to_string(kind_));
        }
        if (number_ == 0) refuse("fields numbered from 1 on, got 0");
        return true;
    }

    [[nodiscard]] std::uint64_t number() const { return number_; }
    [[nodiscard]] std::uint64_t count() const { return need(0), value_; }
    [[nodiscard]] bool flag() const { return count() != 0; }
    [[nodiscard]] std::string_view bytes() const { return need(2), bytes_; }
    [[nodiscard]] float real() const {
        need(5);
        float x = 0;
        std::memcpy(&x, bytes_.data(), sizeof x);
        return x;
    }
    [[nodiscard]] Message message() const { return {bytes(), file_name_}; }

private:
    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (rest_.empty()) refuse("a whole number, got the end of the message");
            const auto byte = static_cast<std::uint8_t>(rest_[0]);
            rest_.remove_prefix(1);
            value |= std::uint64_t{byte & 127u} << shift;
            if (byte < 128) return value;
        }
        refuse("a number of at most 10 bytes, got more");
    }
    void take(std::uint64_t n) {
        if (n > rest_.size()) refuse(std::to_string(n) + " more bytes, got " + std::to_string(rest_.size()));
        bytes_ = rest_.substr(0, n);
        rest_.remove_prefix(n);
    }
    void need(std::uint32_t kind) const {
        if (kind_ != kind)
            refuse("field " + std::to_string(number_) + " of kind " + std::to_string(kind) + ", got " +
                   std::to_string(kind_));
    }
    [[noreturn]] void refuse(const std::string& wanted) const {
        throw host::Error(file_name_ + ": SentencePiece model: expected " + wanted);
    }

    std::string_view rest_, bytes_;
    const std::string& file_name_;
    std::uint64_t number_ = 0, value_ = 0;
    std::uint32_t kind_ = 0;
};

PieceModel::Piece read_piece(Message message, const std::string& place) {
    PieceModel::Piece piece;
    while (message.next()) {
        if (message.number() == 1) piece.text = message.bytes();
        if (message.number() == 2) piece.score = message.real();
        if (message.number() == 3) {
            if (message.count() < 1 || message.count() > 6)
                throw host::Error(place + ": type: expected 1 to 6, got " + std::to_string(message.count()));
            piece.kind = static_cast<PieceKind>(message.count());
        }
    }
    if (!std::isfinite(piece.score)) throw host::Error(place + ": score: expected a finite number, got another");
    return piece;
}

/// trainer_spec: its fields that matter after training. Ids below zero, as there is none, are ten bytes long.
void read_trainer(Message message, PieceModel& model, const std::string& file_name) {
    const auto id = [&] {
        const auto value = static_cast<std::int64_t>(message.count());
        return value < 0 || value >= kNoId ? kNoId : static_cast<std::uint32_t>(value);
    };
    while (message.next()) switch (message.number()) {
            case 3:
                if (message.count() != 1 && message.count() != 2 && message.count() != 4)
                    throw host::Error(
                        file_name + ": trainer_spec.model_type: expected 1 (Unigram), 2 (BPE) or 4 (characters), got " +
                        std::to_string(message.count()));
                model.unigram = message.count() == 1;
                model.merges = message.count() == 2;
                break;
            case 24:
                if (message.flag())
                    throw host::Error(file_name +
                                      ": trainer_spec.treat_whitespace_as_suffix: expected false, got true");
                break;
            case 35: model.byte_fallback = message.flag(); break;
            case 40: model.unknown = id(); break;
            case 41: model.bos = id(); break;
            case 42: model.eos = id(); break;
            default: break;
        }
}

void read_normalizer(Message message, PieceModel& model) {
    while (message.next()) switch (message.number()) {
            case 2: model.charsmap = message.bytes(); break;
            case 3: model.puts_space_first = message.flag(); break;
            case 4: model.removes_extra_spaces = message.flag(); break;
            case 5: model.spells_spaces = message.flag(); break;
            default: break;
        }
}

/// The source for a model's pieces: their spelling in a text, and the steps that find them there.
class SentencePieces {
public:
    SentencePieces(const PieceModel& model, const std::string& place) : model_(model), place_(place) {
        source_.model = model.unigram ? TokenizerModel::unigram : TokenizerModel::bpe;
        source_.flags = kFuseUnknown;
        if (model.byte_fallback) source_.flags |= kByteFallback;
        if (model.unigram) source_.flags |= kSingleSums;
        if (model.puts_space_first || model.removes_extra_spaces) source_.flags |= kDropFirstSpace;
        source_.bos = id_or_none(model.bos);
        source_.unknown = id_or_none(model.unknown);
        if (const std::uint32_t eos = id_or_none(model.eos); eos != kNoId) source_.end_ids = {eos};
    }

    TokenizerSource run() {
        for (std::uint32_t id = 0; id < model_.pieces.size(); ++id) add(id);
        if (model_.unigram) {
            source_.scores.push_back(unknown_score());
        } else if (model_.merges) {
            const std::vector<std::string_view> views(texts_.begin(), texts_.end());
            source_.merges = piece_merges(views, scores_, text_ids_);
        }
        add_steps();
        return std::move(source_);
    }

private:
    [[nodiscard]] std::uint32_t id_or_none(std::uint32_t id) const { return id < model_.pieces.size() ? id : kNoId; }

    void add(std::uint32_t id) {
        const PieceModel::Piece& piece = model_.pieces[id];
        if (piece.text.size() > kMostPieceBytes)
            throw host::Error(place_ + ": piece " + std::to_string(id) + ": expected at most " +
                              std::to_string(kMostPieceBytes) + " bytes, got " + std::to_string(piece.text.size()));
        const std::string& text =
            texts_.emplace_back(model_.spells_spaces ? replaced(piece.text, kMetaspace, " ") : piece.text);
        scores_.push_back(piece.score);
        double score = piece.score;
        if (piece.kind == PieceKind::byte) {
            const int byte = byte_of_token(piece.text);
            if (byte < 0)
                throw host::Error(place_ + ": piece " + std::to_string(id) + ": expected <0x00> to <0xFF>, got " +
                                  piece.text);
            source_.add_byte(id, byte);
        } else {
            source_.tokens.set(id, text);
        }
        // If spaces are spelled "▁", no text has another.
        const bool has_space = model_.spells_spaces && piece.text.find(' ') != std::string::npos;
        const bool found_in_text = !has_space && (piece.kind == PieceKind::normal ||
                                                  (model_.unigram && piece.kind == PieceKind::user_defined));
        if (piece.kind == PieceKind::user_defined) {
            if (has_space) refuse_kept_spaces(piece.text);
            if (model_.unigram)
                score = static_cast<float>(piece.text.size()) * most_score() - 0.1;
            else if (!has_space)
                add_user_defined(id, text);
        }
        if (piece.kind == PieceKind::control || piece.kind == PieceKind::unknown) source_.special.push_back(id);
        if (piece.kind == PieceKind::control || piece.kind == PieceKind::unknown) add_control(id, text);
        if (model_.unigram) source_.scores.push_back(score);
        if (!found_in_text || text.empty()) return;
        if (model_.unigram) {
            source_.pieces.emplace_back(text, id);
        } else {
            text_ids_.push_back(id);
            if (first_character(text).bytes == text.size()) source_.lookup.push_back(id);
        }
    }

    /// Spaces of a piece of the user's stay, though it is not found itself; others would go.
    void refuse_kept_spaces(const std::string& text) const {
        if (model_.removes_extra_spaces && (text.front() == ' ' || text.back() == ' ' || text.find("  ") != text.npos))
            throw host::Error(place_ + ": user-defined piece: expected one without spaces that are removed, got \"" +
                              text + "\"");
    }

    /// Found where the text is prepared, and never part of a longer piece.
    void add_user_defined(std::uint32_t id, const std::string& text) {
        if (!text.empty() && text.size() <= kMaxAddedBytes) source_.added.push_back({id, kAddedNormalized, text});
    }
    /// Found in the text as it was given, and only if special tokens are asked for.
    void add_control(std::uint32_t id, const std::string& text) {
        if (!text.empty() && text.size() <= kMaxAddedBytes) source_.added.push_back({id, kAddedSpecial, text});
    }

    // SentencePiece has both in single precision.
    [[nodiscard]] float most_score() const {
        float most = std::numeric_limits<float>::min();  // so its search starts, above zero
        for (const PieceModel::Piece& piece : model_.pieces)
            if (piece.kind == PieceKind::normal) most = std::max(most, piece.score);
        return most;
    }
    [[nodiscard]] double unknown_score() const {
        float least = std::numeric_limits<float>::max();
        for (const PieceModel::Piece& piece : model_.pieces)
            if (piece.kind == PieceKind::normal) least = std::min(least, piece.score);
        return least - static_cast<float>(kUnknownPenalty);
    }

    void add_steps() {
        const auto put = [&](StepKind kind, std::uint8_t mode, std::string_view from = {}, std::string_view to = {},
                             std::uint32_t limit = 0) {
            source_.steps.push_back(make_step(kind, mode, from, to, limit));
        };
        const auto has = [&](AddedFlag flag) {
            return std::any_of(source_.added.begin(), source_.added.end(),
                               [&](const auto& a) { return a.flags & flag; });
        };
        if (has(kAddedSpecial)) put(StepKind::added_tokens, 0);
        add_map();
        if (model_.removes_extra_spaces) {
            const RefusePattern refuse = [&](const std::string& wanted) {
                throw host::Error(place_ + ": expected " + wanted);
            };
            const PatternNodes runs = parse_pattern(" {2,}", refuse);
            source_.steps.push_back(
                pattern_step(source_.patterns, runs, false, StepKind::replace_pattern, 0, " ", refuse));
            put(StepKind::strip, kStripLeft | kStripBlanks);
        }
        if (model_.puts_space_first) put(StepKind::prepend, 0, {}, " ");
        if (model_.spells_spaces) put(StepKind::replace, 0, kMetaspace, " ");
        // At the end a "▁" of the text goes too.
        if (model_.removes_extra_spaces) put(StepKind::strip, kStripRight | kStripBlanks);
        if (has(kAddedNormalized)) put(StepKind::added_tokens, 1);
    }

    /// The file's map. It must leave the user's pieces as they are, since it cannot tell them apart.
    void add_map() {
        MapSource map;
        if (!model_.charsmap.empty()) map = read_charsmap(model_.charsmap, place_ + ": precompiled_charsmap");
        source_.maps.push_back(std::move(map));
        source_.steps.push_back(make_step(StepKind::map, kMapReplaces));
        const Rewriter rewriter({source_.steps.back()}, {}, source_.maps);
        for (const PieceModel::Piece& piece : model_.pieces)
            if (piece.kind == PieceKind::user_defined && rewriter.rewritten(piece.text, 1) != piece.text)
                throw host::Error(place_ +
                                  ": user-defined piece: expected one that the normalizer leaves as it is, got " +
                                  piece.text);
    }

    const PieceModel& model_;
    const std::string& place_;
    TokenizerSource source_;
    std::vector<std::string> texts_;
    std::vector<float> scores_;
    std::vector<std::uint32_t> text_ids_;
};

}  // namespace

TokenizerSource source_of_pieces(const PieceModel& model, const std::string& place) {
    return SentencePieces(model, place).run();
}

PieceModel read_sentence_piece(std::span<const std::byte> bytes, const std::string& file_name) {
    PieceModel model;
    Message file({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file_name);
    while (file.next()) {
        if (file.number() == 1)
            model.pieces.push_back(
                read_piece(file.message(), file_name + ": piece " + std::to_string(model.pieces.size())));
        if (file.number() == 2) read_trainer(file.message(), model, file_name);
        if (file.number() == 3) read_normalizer(file.message(), model);
    }
    if (model.pieces.empty()) throw host::Error(file_name + ": SentencePiece model: expected pieces, got none");
    return model;
}

std::vector<std::byte> tokenizer_section_from_sentence_piece(std::span<const std::byte> bytes,
                                                             const std::string& file_name,
                                                             const TokenizerFacts& facts) {
    const PieceModel model = read_sentence_piece(bytes, file_name);
    if (model.pieces.size() > facts.vocab_size)
        throw host::Error(file_name + ": expected at most " + std::to_string(facts.vocab_size) +
                          " pieces, as the model's vocab_size, got " + std::to_string(model.pieces.size()));
    TokenizerSource source = source_of_pieces(model, file_name);
    if (facts.bos) source.bos = *facts.bos;
    if (facts.bos && facts.adds_bos) source.prefix_ids = {source.bos};
    if (!facts.eos.empty()) source.end_ids = facts.eos;
    if (!facts.eos.empty() && facts.adds_eos && facts.left_out_last != facts.eos.front())
        source.suffix_ids = {facts.eos.front()};
    if (facts.lower_case) {
        const auto first = std::find_if(source.steps.begin(), source.steps.end(), [](const TokenizerStep& step) {
            return step.kind != static_cast<std::uint8_t>(StepKind::added_tokens);
        });
        source.steps.insert(first, make_step(StepKind::characters, kLowerCase));
    }
    return write_tokenizer_section(source);
}

bool looks_like_sentence_piece(std::span<const std::byte> bytes) {
    // Field 1 with a length, in it field 1, again with a length that fits.
    const auto at = [&](std::size_t i) { return std::to_integer<std::uint8_t>(bytes[i]); };
    return bytes.size() > 4 && at(0) == 0x0a && at(1) < 128 && at(2) == 0x0a && at(3) + 2u <= at(1);
}

}  // namespace fovea
