#include "convert/tokenizers/gguf_cuts.h"

#include <algorithm>
#include <vector>

#include "convert/tokenizers/tokenizer_steps.h"
#include "host/base/error.h"

namespace fovea {
namespace {

// Parts of the patterns, as the models' own tokenizer.json spell them.
const std::string kContractions = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))", kWordRuns = R"([^\r\n\p{L}\p{N}]?\p{L}+)";
const std::string kSigns = R"( ?[^\s\p{L}\p{N}]+)", kSpaceRuns = R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string kUpper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])", kLower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
const std::string kAsciiSign = R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)";
const std::string kMarked = R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+)";

/// Words whose capitals come first, and words of small letters, with `end` after each.
std::string mixed(const std::string& upper, const std::string& lower, const std::string& end) {
    const std::string before = R"([^\r\n\p{L}\p{N}]?)";
    return before + upper + "*" + lower + "+" + end + "|" + before + upper + "+" + lower + "*" + end;
}

const std::string kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string kLlama3 = kContractions + "|" + kWordRuns + R"(|\p{N}{1,3}|)" + kSigns + R"([\r\n]*)" + kSpaceRuns;
const std::string kQwen2 = kContractions + "|" + kWordRuns + R"(|\p{N}|)" + kSigns + R"([\r\n]*)" + kSpaceRuns;
const std::string kQwen35 =
    kContractions + R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" + kSpaceRuns;
const std::string kCased = mixed(kUpper, kLower, kContractions + "?"), kSlashes = kSigns + R"([\r\n/]*)" + kSpaceRuns;
const std::string kO200k = kCased + R"(|\p{N}{1,3}|)" + kSlashes, kO200kDigits = kCased + R"(|\p{N}|)" + kSlashes;
const std::string kTekken = mixed(kUpper, kLower, "") + R"(|\p{N}|)" + kSlashes;
const std::string kDeepseek3 = kAsciiSign + kMarked + R"([\r\n]*)" + kSpaceRuns;
const std::string kSpark = kAsciiSign + kMarked + R"(|[\r\n]|\s+(?!\S)|\s+)";
const std::string kKimi = R"(\p{Han}+|)" +
                          mixed(R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])",
                                R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])", kContractions + "?") +
                          R"(|\p{N}{1,3}|)" + kSigns + R"([\r\n]*)" + kSpaceRuns;
const std::string kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
const std::string kHan = "[一-龥぀-ゟ゠-ヿ]+";
const std::string kOldHan = "[一-龥ࠀ-一가-퟿]+";
const std::string kLetters =
    R"(\s?[)"
    R"(A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-)"
    R"(\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-)"
    R"(\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf)"
    R"(\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-)"
    R"(\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc)"
    R"(\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115)"
    R"(\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e)"
    R"(\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-)"
    R"(\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a)"
    R"(\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2})"
    R"(\x{118a0}-\x{118df}\x{1e900}-\x{1e943})"
    R"(]+)";
const std::string kPunctuationRuns = "\\s?[!-/:-~！-／：-～‘-‟　-。]+";
const std::string kSpaces =
    R"(|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
const std::string kJais2 =
    kContractions + "|" + kWordRuns + R"(|\p{N}{1,3}|)" + kSigns + R"([\r\n]*|\s*[\r\n]+)" + kSpaces;
const std::string kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|)" + kWordRuns + R"(|\p{N}|)" + kSigns + R"([\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
const std::string kYoutu =
    "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+";
const std::string kExaoneMoe = kContractions + R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|)" +
                               kSigns + R"([\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
const std::string kAsian =
    "[一-鿿㐀-䶿豈-\ufaff぀-ゟ゠-ヿ･-ﾟ⼀-\u2fdfเ-\u0e7f\u0e80-\u0effក-\u17ffက-႟ꩠ-ꩿꧠ-"
    "\ua9ff가-"
    "\ud7afᄀ-"
    "ᇿ]"
    "+";

// Parts of words for Oniguruma's \\b beside letters, marks, digits and connectors: letters in circles and squares, and
// Latin-1's superscripts and fractions.
const std::string kOtherWord =
    "\u00b2\u00b3\u00b9\u00bc-\u00be\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189";

/// One after the other, each cutting the pieces that the ones before it left. "#" first: its matches are cut in threes
/// from the end. "##": text is cut before each of those, and nowhere else.
struct Cut {
    std::vector<const char*> names;
    std::vector<std::string> patterns;
    GgufCut rest;
};

constexpr GgufCut kPlain{.known = true};
constexpr GgufCut kNormalizedCut{.known = true, .nfc = true};
constexpr GgufCut kWhole{.known = true, .whole_words = true};
constexpr GgufCut kWholeBos{.known = true, .whole_words = true, .adds_bos = true};
constexpr GgufCut kBos{.known = true, .adds_bos = true};
constexpr GgufCut kSep{.known = true, .adds_sep = true};
constexpr GgufCut kCharacters{.known = true, .adds_bos = true, .bytes = false};

const std::vector<Cut>& cuts() {
    static const std::vector<Cut> kCuts = {
        {{"gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum",
          "modern-bert", "exaone4", "mpt", "olmo", "jais", "trillion", "granite-docling", "default"},
         {kGpt2},
         kPlain},
        {{"jina-v1-en", "jina-v2-code", "roberta-bpe"}, {kGpt2}, kSep},
        {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"},
         {R"(\p{N})", kGpt2},
         kPlain},
        {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
         {kLlama3},
         kWholeBos},
        {{"dbrx", "smaug-bpe", "chatglm-bpe"}, {kLlama3}, kPlain},
        {{"glm4"}, {kLlama3}, kWhole},
        {{"jais-2"}, {kJais2}, kPlain},
        {{"minicpm5"},
         {R"(\p{N}{1,3})", kContractions + "|" + kWordRuns + R"(|\p{N}+|)" + kSigns + R"([\r\n]*)" + kSpaceRuns},
         kWhole},
        {{"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez"}, {kQwen2}, kNormalizedCut},
        {{"stablelm2", "hunyuan", "solar-open", "grok-2"}, {kQwen2}, kPlain},
        {{"qwen35"}, {kQwen35}, kNormalizedCut},
        {{"falcon"}, {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, "[0-9][0-9][0-9]"}, kPlain},
        {{"bloom", "poro-chat", "gpt3-finnish"}, {kBloom}, kPlain},
        {{"viking"}, {kBloom, R"(\p{N})"}, kPlain},
        {{"deepseek-llm"}, {R"([\r\n])", kLetters, kPunctuationRuns, R"(\s+$)", kOldHan, R"(\p{N}+)"}, kPlain},
        {{"deepseek-coder"}, {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kOldHan, R"(\p{N})"}, kPlain},
        {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}, {R"(\p{N}{1,3})", kHan, kDeepseek3}, kPlain},
        {{"spark2_5"}, {R"(\p{N}{1,3})", kHan, kSpark, R"(\p{N})"}, kPlain},
        {{"youtu"}, {kYoutu, kO200kDigits}, kWhole},
        {{"tekken"}, {kTekken}, kWholeBos},
        {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {kO200k}, kPlain},
        {{"granite-embed-multi-97m"}, {kO200k}, kWhole},
        {{"kimi-k2"}, {kKimi}, kPlain},
        {{"chameleon"},
         {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", R"(([\t\n]|    |  ))", R"(\p{N})",
          R"([\p{P}!-/:-@\[-`{-~])", kGpt2},
         kBos},
        {{"superbpe"}, {R"(\p{N}+)", R"(##\d+)"}, kPlain},
        {{"tiny_aya", "cohere2moe"}, {R"(#\d+(?![\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc})" + kOtherWord + "])", kO200k}, kPlain},
        {{"afmoe"}, {R"(#\p{N}+)", kAsian, kDeepseek3}, kPlain},
        {{"bailingmoe", "bailingmoe2", "llada-moe"}, {kBailing}, kPlain},
        {{"seed-coder"}, {kContractions + "|" + kWordRuns + R"(|\p{N}| ?[^\s\p{L}\p{N}\r\n]+)" + kSpaceRuns}, kPlain},
        {{"ufakzeka"}, {kWordRuns + R"(|\p{N}|)" + kSigns + R"([\r\n]*)" + kSpaceRuns}, kPlain},
        {{"laguna"}, {R"([^\n]+|[\n]+)", kQwen2}, kPlain},
        {{"exaone-moe"}, {kExaoneMoe}, kPlain},
        {{"gemma4", "granite-embed-multi-311m"}, {R"([^\n]+|[\n]+)"}, kCharacters},
        {{"sarvam-moe"}, {R"([^\n]+|[\n]+)"}, {.known = true, .bytes = false}},
    };
    return kCuts;
}

const Cut* find_cut(std::string_view name) {
    for (const Cut& cut : cuts())
        if (std::find(cut.names.begin(), cut.names.end(), name) != cut.names.end()) return &cut;
    return nullptr;
}

/// Three of them have a step of their own, which is faster.
bool add_words(const std::string& pattern, TokenizerSource& source) {
    const auto put = [&](std::uint8_t mode, std::uint32_t limit) {
        source.steps.push_back(make_step(StepKind::words, mode, {}, {}, limit));
        return true;
    };
    if (pattern == kGpt2) return put(0, 0);
    if (pattern == kLlama3) return put(kWordFlags, 3);
    if (pattern == kQwen2) return put(kWordFlags, 1);
    return false;
}

}  // namespace

GgufCut add_gguf_cut(std::string_view name, TokenizerSource& source) {
    const Cut* cut = find_cut(name);
    if (!cut) return {};
    const RefusePattern refuse = [&](const std::string& wanted) {
        throw host::Error("tokenizer.ggml.pre " + std::string(name) + ": expected " + wanted);
    };
    if (cut->rest.nfc) source.steps.push_back(make_step(StepKind::normal_form));
    if (!cut->rest.bytes) source.steps.push_back(make_step(StepKind::replace, 0, kMetaspace, " "));
    for (const std::string& pattern : cut->patterns) {
        if (add_words(pattern, source)) continue;
        const std::size_t n_marks = pattern.find_first_not_of('#');
        constexpr SplitMode kModes[] = {SplitMode::isolated, SplitMode::threes, SplitMode::before_threes};
        const PatternNodes nodes = parse_pattern(std::string_view(pattern).substr(n_marks), refuse);
        const auto mode = static_cast<std::uint8_t>(kModes[n_marks]);
        source.steps.push_back(pattern_step(source.patterns, nodes, false, StepKind::pattern, mode, {}, refuse));
    }
    return cut->rest;
}

std::string gguf_cut_names() {
    std::string names;
    for (const Cut& cut : cuts())
        for (const char* name : cut.names) names += (names.empty() ? "" : ", ") + std::string(name);
    return names;
}

}  // namespace fovea
