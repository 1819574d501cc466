// Speculation by lookup, on texts a model would write if it did as told: an edit of a program, an edited list, and one that
// never repeats. A filter leaves no token but the text's next, so the random weights of SmolLM2-135M's shape write it too;
// with and without speculation take turns. Words, their space before them, and single marks are tokens.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "bench/suites/suites.h"
#include "fovea/host/runtime.h"
#include "host/base/clock.h"
#include "host/base/error.h"

namespace fovea {
namespace {

constexpr int kPairs = 7;
constexpr std::uint32_t kProposed = 8, kContext = 2048;

struct Text {
    std::string prompt, answer;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
}

/// One member of a class has another name from here on.
Text edited_program() {
    std::ifstream file(FOVEA_SOURCE_DIR "/engine/text/economy.cpp");
    std::string program, line;
    for (int n = 0; n < 60 && std::getline(file, line); ++n) program += line + '\n';
    if (program.find("balance_") == std::string::npos)
        throw host::Error("economy.cpp: expected a member balance_, got none");
    return {"Call balance_ credit_ in this file:\n\n" + program + "\nHere it is:\n\n",
            replaced(program, "balance_", "credit_")};
}

Text edited_list() {
    std::string list;
    for (const char* item : {"two bottles of milk", "a dozen eggs", "bread", "olive oil", "six red apples", "rice",
                             "tomatoes for the soup", "paper towels", "cat food", "light bulbs", "dish soap", "onions"})
        list += std::string("- ") + item + "\n";
    return {"Our list:\n" + list + "Take pears instead of apples.\n", replaced(list, "apples", "pears")};
}

/// No two tokens that follow each other do so again.
Text without_repetition() {
    Numbers numbers;
    Text text{"Numbers:", ""};
    for (int n = 0; n < 300; ++n) text.answer += " w" + std::to_string(numbers.next());
    return text;
}

/// Ids of a text's words and marks, in the order in which they were first seen.
class Vocabulary {
public:
    std::vector<Token> tokens(const std::string& text) {
        std::vector<Token> out;
        for (std::size_t i = 0; i < text.size();) {
            std::size_t end = i + 1;
            if (text[i] == ' ' && end < text.size() && is_word(text[end])) ++end;
            if (is_word(text[end - 1]))
                while (end < text.size() && is_word(text[end])) ++end;
            else
                while (text[i] == ' ' && end < text.size() && text[end] == ' ') ++end;
            out.push_back(ids_.try_emplace(text.substr(i, end - i), static_cast<Token>(ids_.size())).first->second);
            i = end;
        }
        return out;
    }

private:
    static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
    std::map<std::string, Token> ids_;
};

/// A generator of one text again and again.
class Forced {
public:
    explicit Forced(const Text& text) {
        Vocabulary vocabulary;
        prompt_ = vocabulary.tokens(text.prompt);
        answer_ = vocabulary.tokens(text.answer);
        const auto length = static_cast<std::uint32_t>(prompt_.size() + answer_.size());
        if (length > kContext)
            throw host::Error("text: expected at most " + std::to_string(kContext) + " tokens, got " +
                              std::to_string(length));
        const host::Opened& opened = smollm2(Type::q8);
        session_ = start_session(opened, {.max_kv_len = length, .n_threads = 1, .kv_type = Type::f16});
        generator_ = start_generator(opened, session_->cache(), {.max_tokens = length, .max_proposed = kProposed});
    }

    /// Seconds of the answer, after the prompt's pass.
    double write(bool speculates) {
        GenerateOptions options{.n_new = static_cast<std::uint32_t>(answer_.size())};
        options.filter.context = this;
        options.filter.allow = [](void* self, std::span<const Token> text, std::span<std::uint32_t> mask) {
            const Forced& forced = *static_cast<const Forced*>(self);
            const Token next = forced.answer_[text.size() - forced.prompt_.size()];
            std::fill(mask.begin(), mask.end(), 0u);
            mask[next / 32] = 1u << next % 32;
        };
        if (speculates) options.speculation = {.n_proposed = kProposed, .clock = host::ticks_now};
        require(rewind(*session_, 0));
        require(resume(*generator_, {}));
        require(start(*generator_, prompt_, options));
        Workspace workspace = session_->workspace();
        Piece piece;
        require(generate(*generator_, workspace, piece));
        const double begin = host::seconds_now();
        while (piece.finish == FinishReason::none) require(generate(*generator_, workspace, piece));
        return host::seconds_now() - begin;
    }

    [[nodiscard]] GenerateFigures figures() const { return generator_->figures(); }

private:
    std::vector<Token> prompt_, answer_;
    host::Runtime<Session> session_;
    host::Runtime<Generator> generator_;
};

/// The benchmark's time is the median of the answer with speculation; `times` is the median of pairs of without by with.
void speculate(benchmark::State& state, const Text& text) {
    for (auto _ : state) {
        Forced forced(text);
        (void)forced.write(false);  // pages, caches and clocks warm up
        std::vector<double> seconds, times;
        for (int pair = 0; pair < kPairs; ++pair) {
            const double without = forced.write(false);
            state.counters["passes_without"] = forced.figures().n_passes;
            seconds.push_back(forced.write(true));
            times.push_back(without / seconds.back());
        }
        std::sort(seconds.begin(), seconds.end());
        std::sort(times.begin(), times.end());
        state.SetIterationTime(seconds[kPairs / 2]);
        state.counters["passes"] = forced.figures().n_passes;
        state.counters["proposed"] = forced.figures().n_proposed;
        state.counters["times"] = times[kPairs / 2];
        state.counters["least"] = times.front();
        state.counters["most"] = times.back();
    }
}

}  // namespace

void add_speculation_suite() {
    add("speculation/edited_program", [](auto& state) { speculate(state, edited_program()); });
    add("speculation/edited_list", [](auto& state) { speculate(state, edited_list()); });
    add("speculation/without_repetition", [](auto& state) { speculate(state, without_repetition()); });
}

}  // namespace fovea
