#include "host/speech/word_times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "host/base/words.h"

namespace fovea {
namespace {

constexpr std::size_t kMedian = 7;

/// Replaces each number by the median of seven around it, mirrored at the ends. Fewer than four stay as they are.
void smooth(std::span<double> row) {
    constexpr std::ptrdiff_t kHalf = kMedian / 2;
    const auto n = static_cast<std::ptrdiff_t>(row.size());
    if (n <= kHalf) return;
    const std::vector<double> before(row.begin(), row.end());
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        std::array<double, kMedian> around;
        for (std::ptrdiff_t k = -kHalf; k <= kHalf; ++k) {
            std::ptrdiff_t at = std::abs(i + k);
            if (at >= n) at = 2 * (n - 1) - at;
            around[static_cast<std::size_t>(k + kHalf)] = before[static_cast<std::size_t>(at)];
        }
        std::nth_element(around.begin(), around.begin() + kHalf, around.end());
        row[static_cast<std::size_t>(i)] = around[kHalf];
    }
}

[[nodiscard]] bool is_in(std::string_view text, std::span<const std::string_view> list) {
    return std::find(list.begin(), list.end(), text) != list.end();
}

/// Whether it ends within a character.
[[nodiscard]] bool is_broken(std::string_view text) {
    constexpr std::string_view kReplacement = "\xef\xbf\xbd";
    if (text.find(kReplacement) != text.npos) return true;
    std::size_t n_more = 0;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (n_more ? (byte & 0xc0) != 0x80 : (byte & 0xc0) == 0x80 || byte >= 0xf8) return true;
        n_more = n_more ? n_more - 1 : byte < 0x80 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    }
    return n_more != 0;
}

[[nodiscard]] bool is_mark(std::string_view text) {
    constexpr std::string_view kAscii = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    text = trimmed(text);
    return text.size() == 1 && kAscii.find(text[0]) != kAscii.npos;
}

}  // namespace

void Alignment::add(std::span<const float> weights, std::size_t stride) {
    for (std::size_t token = 0; token < n_tokens_; ++token) {
        double sum = 0;
        for (std::size_t i = 0; i < n_frames_; ++i) sum += static_cast<double>(weights[token * stride + i]);
        for (std::size_t i = 0; i < n_frames_; ++i)
            head_[token * n_frames_ + i] = sum > 0 ? static_cast<double>(weights[token * stride + i]) / sum : 0;
    }
    const auto n = static_cast<double>(n_tokens_);
    for (std::size_t i = 0; i < n_frames_; ++i) {
        double mean = 0, squares = 0;
        for (std::size_t token = 0; token < n_tokens_; ++token) mean += head_[token * n_frames_ + i];
        mean /= n;
        for (std::size_t token = 0; token < n_tokens_; ++token) {
            const double d = head_[token * n_frames_ + i] - mean;
            squares += d * d;
        }
        const double deviation = std::sqrt(squares / n);
        for (std::size_t token = 0; token < n_tokens_; ++token) {
            double& x = head_[token * n_frames_ + i];
            x = deviation > 0 ? (x - mean) / deviation : 0;
        }
    }
    for (std::size_t token = 0; token < n_tokens_; ++token) {
        const std::span<double> row = std::span(head_).subspan(token * n_frames_, n_frames_);
        smooth(row);
        for (std::size_t i = 0; i < n_frames_; ++i) sums_[token * n_frames_ + i] += row[i];
    }
}

std::vector<std::uint32_t> Alignment::begins(std::size_t first, std::size_t n) const {
    // cost of the cheapest way to each row and frame, with one row and one column before the first
    const std::size_t width = n_frames_ + 1;
    enum : std::uint8_t { both, row_alone, frame_alone };
    std::vector<std::uint8_t> steps((n + 1) * width, both);
    std::vector<double> above(width, std::numeric_limits<double>::infinity()), here(width);
    above[0] = 0;
    for (std::size_t row = 1; row <= n; ++row) {
        here[0] = std::numeric_limits<double>::infinity();
        for (std::size_t frame = 1; frame <= n_frames_; ++frame) {
            const double diagonal = above[frame - 1], down = above[frame], right = here[frame - 1];
            std::uint8_t& step = steps[row * width + frame];
            double least = right;
            step = frame_alone;
            if (diagonal < down && diagonal < right)
                least = diagonal, step = both;
            else if (down < diagonal && down < right)
                least = down, step = row_alone;
            here[frame] = least - sums_[(first + row - 1) * n_frames_ + frame - 1];
        }
        std::swap(above, here);
    }
    std::vector<std::uint32_t> begins(n);
    for (std::size_t row = n, frame = n_frames_; row > 0 && frame > 0;) {
        begins[row - 1] = static_cast<std::uint32_t>(frame - 1);
        const std::uint8_t step = steps[row * width + frame];
        row -= step != frame_alone;
        frame -= step != row_alone;
    }
    return begins;
}

std::vector<WordTokens> split_words(std::span<const Token> tokens, const std::string& language,
                                    const std::function<std::string(std::span<const Token>)>& text_of) {
    constexpr std::string_view kWithoutSpaces[] = {"zh", "ja", "th", "lo", "my", "yue"};
    const bool by_characters = is_in(language, kWithoutSpaces);
    std::vector<WordTokens> words;
    for (std::size_t first = 0, n = 1; first < tokens.size(); first += n, n = 1) {
        std::string text = text_of(tokens.subspan(first, n));
        while (is_broken(text) && first + n < tokens.size()) text = text_of(tokens.subspan(first, ++n));
        if (words.empty() || by_characters || text.starts_with(' ') || is_mark(text)) {
            words.push_back({text, first, n});
        } else {
            words.back().text += text;
            words.back().n += n;
        }
    }
    return words;
}

void join_marks(std::vector<SpeechWord>& words) {
    constexpr std::string_view kOpening[] = {"\"", "'", "“", "¿", "(", "[", "{", "-"};
    constexpr std::string_view kClosing[] = {"\"", "'", ".",  "。", ",", "，", "!", "！", "?",
                                             "？", ":", "：", "”",  ")", "]",  "}", "、"};
    const auto take = [](SpeechWord& word, SpeechWord& mark) {
        word.n_tokens += mark.n_tokens;
        mark.text.clear();
        mark.n_tokens = 0;
    };
    for (std::size_t i = words.size(), next = words.size(); i-- > 0;) {  // next: the word after i that has a text
        SpeechWord& mark = words[i];
        if (next < words.size() && mark.text.starts_with(' ') && is_in(trimmed(mark.text), kOpening)) {
            words[next].text = mark.text + words[next].text;
            take(words[next], mark);
        } else {
            next = i;
        }
    }
    for (std::size_t i = 1, last = 0; i < words.size(); ++i) {
        if (words[i].text.empty() || words[last].text.empty() || words[last].text.ends_with(' ') ||
            !is_in(words[i].text, kClosing)) {
            if (!words[i].text.empty()) last = i;
            continue;
        }
        words[last].text += words[i].text;
        take(words[last], words[i]);
    }
    std::erase_if(words, [](const SpeechWord& word) { return word.n_tokens == 0; });
}

double median_duration(std::span<const SpeechWord> words) {
    constexpr double kMost = 0.7;
    std::vector<double> all;
    for (const SpeechWord& word : words)
        if (word.end > word.start) all.push_back(word.end - word.start);
    if (all.empty()) return 0;
    std::sort(all.begin(), all.end());
    const std::size_t half = all.size() / 2;
    return std::min(all.size() % 2 ? all[half] : (all[half - 1] + all[half]) / 2, kMost);
}

void cut_pauses(std::vector<SpeechWord>& words, double most) {
    constexpr std::string_view kEnds[] = {".", "。", "!", "！", "?", "？"};
    for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i].end - words[i].start <= most) continue;
        if (is_in(words[i].text, kEnds))
            words[i].end = words[i].start + most;
        else if (is_in(words[i - 1].text, kEnds))
            words[i].start = words[i].end - most;
    }
}

double settle_borders(SpeechSegment& segment, double median, double speech_end) {
    constexpr double kFar = 0.5, kPause = 4;  // seconds; medians
    if (segment.words.empty()) return speech_end;
    const double most = 2 * median;
    SpeechWord& first = segment.words.front();
    SpeechWord* const second = segment.words.size() > 1 ? &segment.words[1] : nullptr;
    const bool is_long = first.end - first.start > most || (second && second->end - first.start > 2 * most);
    if (first.end - speech_end > kPause * median && is_long) {
        if (second && second->end - second->start > most)
            first.end = second->start = std::max(second->end / 2, second->end - most);
        first.start = std::max(0.0, first.end - most);
    }
    if (segment.start < first.end && segment.start - kFar > first.start)
        first.start = std::max(0.0, std::min(first.end - median, segment.start));
    else
        segment.start = first.start;
    SpeechWord& last = segment.words.back();
    if (segment.end > last.start && segment.end + kFar < last.end)
        last.end = std::max(last.start + median, segment.end);
    else
        segment.end = last.end;
    return segment.end;
}

void put_in_order(std::span<SpeechWord* const> words, double begin, double end) {
    constexpr double kFrame = 0.02;
    const double least = std::min(kFrame, std::max(end - begin, 0.0) / static_cast<double>(words.size()));
    double at = begin;
    for (SpeechWord* word : words) {
        word->start = std::max(word->start, at);
        at = word->end = std::max(word->end, word->start + least);
    }
    at = end;
    for (std::size_t i = words.size(); i-- > 0;) {
        SpeechWord& word = *words[i];
        word.end = std::min(word.end, at);
        at = word.start = std::min(word.start, word.end - least);
    }
}

}  // namespace fovea
