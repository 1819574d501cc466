// What a file says of the texts that its decoder writes: a host::Error, or rules that begin within the vocabulary and forbid nothing
// beyond it, whatever was written before. What one says of late interaction: the same, or what is written and read again as it was.
#include <vector>

#include "host/model/late_interaction.h"
#include "host/translate/target_filter.h"
#include "tests/fuzz/fuzz.h"

namespace {

constexpr std::uint32_t kVocab = 45, kPositions = 30;

void read_late(std::string_view text) {
    using namespace fovea;
    try {
        const LateInteraction how = LateInteraction::read(text, kVocab, "fuzz");
        for (const Token id : how.skipped) fuzz::promise(id < kVocab, "skipped tokens within the vocabulary");
        for (const std::optional<Token>& id : {how.query.marker, how.document.marker, how.filler})
            fuzz::promise(!id || *id < kVocab, "markers within the vocabulary");
        const std::string written = how.to_json();
        fuzz::promise(LateInteraction::read(written, kVocab, "fuzz").to_json() == written, "the same read again");
    } catch (const host::Error&) {
    }
}

}  // namespace

FOVEA_FUZZ_TARGET(target_rules) {
    using namespace fovea;
    read_late({reinterpret_cast<const char*>(data), size});
    try {
        const TargetRules rules = TargetRules::read({reinterpret_cast<const char*>(data), size}, kVocab, "fuzz");
        std::vector<Token> text = rules.prompt();
        for (const Token id : text) fuzz::promise(id < kVocab, "a prompt within the vocabulary");
        fuzz::promise(rules.beams.n_beams - 1 < kMostBeams, "a number of beams that has memory");
        fuzz::promise(rules.most_new(kPositions) < kPositions, "no more tokens than positions");
        const std::vector<Token> source = {3, 1, 4, 1, 5, 9, 2, 6, 3, 1, 4, 2};
        TargetFilter target(rules, source);
        const TokenFilter filter = target.filter();
        for (std::uint32_t i = 0; i < 12; ++i) {
            std::vector<std::uint32_t> mask((kVocab + 31) / 32, 0xffffffffu);
            filter.allow(filter.context, text, mask);
            std::uint32_t id = i * 7 % kVocab, n_seen = 0;
            while (n_seen++ < kVocab && !(mask[id / 32] >> id % 32 & 1)) id = (id + 1) % kVocab;
            if (n_seen > kVocab) break;  // nothing is allowed, which sampling refuses
            text.push_back(id);
        }
    } catch (const host::Error&) {
    }
    return 0;
}
