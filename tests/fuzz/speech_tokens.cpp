// What a file says of its tokens that steer: a host::Error, or rules that leave whatever is written within the vocabulary.
#include <cmath>
#include <vector>

#include "host/speech/speech_rules.h"
#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(speech_tokens) {
    using namespace fovea;
    constexpr std::uint32_t kVocab = 400;
    try {
        const SpeechTokens tokens = SpeechTokens::read({reinterpret_cast<const char*>(data), size}, kVocab, "fuzz");
        std::vector<float> logits(kVocab);
        if (tokens.multilingual) {
            const std::string language = detect_language(tokens, logits).language;
            fuzz::promise(tokens.languages.contains(language), "a language of the model's");
            for (const Token id : speech_prompt(tokens, language, tokens.tasks.begin()->first, false))
                fuzz::promise(id < kVocab, "a prompt within the vocabulary");
        }
        std::vector<Token> written;
        for (int i = 0; i < 12; ++i) {
            for (std::uint32_t id = 0; id < kVocab; ++id)
                logits[id] = static_cast<float>((id * 31 + i * 17) % 101) * 0.1f;
            apply_rules(tokens, written, i % 5 != 4, logits);
            std::uint32_t best = kVocab;
            for (std::uint32_t id = 0; id < kVocab; ++id)
                if (logits[id] > -INFINITY && (best == kVocab || logits[id] > logits[best])) best = id;
            if (best == kVocab) break;  // nothing is allowed, which sampling refuses
            written.push_back(best);
        }
    } catch (const host::Error&) {
    }
    return 0;
}
