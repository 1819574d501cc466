// fovea tokenize: a text's ids, and the text of ids.
#include <ctime>
#include <sstream>

#include "convert/open/open.h"
#include "fovea/host/token_places.h"
#include "host/base/text_file.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

struct IdsOptions {
    CommonOptions common;
    std::string model, file, lines;
    std::optional<std::string> text, pair, ids;
    bool special = false, pieces = false, offsets = false, speed = false;
};

/// An id's bytes, as they stand in a text; what is no UTF-8 as "<0xE2>".
std::string piece_of(const Tokenizer& tokenizer, Token id) {
    const std::string bytes(token_bytes(tokenizer, id));
    try {
        static_cast<void>(Json(bytes).dump());
        return bytes;
    } catch (const nlohmann::json::exception&) {
        std::string spelled;
        char hexadecimal[8];
        for (const char byte : bytes) {
            std::snprintf(hexadecimal, sizeof hexadecimal, "<0x%02X>", static_cast<unsigned char>(byte));
            spelled += hexadecimal;
        }
        return spelled;
    }
}

using Places = std::vector<host::TokenPlace>;

void print_ids(const IdsOptions& options, const Tokenizer& tokenizer, const host::TokenizedPair& pair,
               const Places& places) {
    const std::vector<Token>& ids = pair.tokens;
    if (options.common.json) {
        Json object{{"n_tokens", ids.size()}, {"tokens", ids}};
        if (!pair.types.empty()) object["token_types"] = pair.types;
        for (std::size_t i = 0; options.pieces && i < ids.size(); ++i)
            object["pieces"].push_back(piece_of(tokenizer, ids[i]));
        for (const auto& [begin, end] : places) object["offsets"].push_back(Json::array({begin, end}));
        std::printf("%s\n", object.dump().c_str());
        return;
    }
    const bool by_lines = options.pieces || options.offsets;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        std::printf("%s%u", i && !by_lines ? " " : "", ids[i]);
        if (options.offsets) std::printf("\t%zu %zu", places[i].begin, places[i].end);
        if (options.pieces) std::printf("\t%s", Json(piece_of(tokenizer, ids[i])).dump().c_str());
        if (by_lines) std::printf("\n");
    }
    if (!by_lines) std::printf("\n");
}

void print_text(const IdsOptions& options, const Tokenizer& tokenizer, const std::string& list) {
    std::vector<Token> ids;
    for (std::size_t at = 0; (at = list.find_first_not_of(" ,\t\r\n", at)) != std::string::npos;) {
        const std::size_t end = std::min(list.find_first_of(" ,\t\r\n", at), list.size());
        std::uint64_t id = 0;
        for (; at < end; ++at) {
            if (list[at] < '0' || list[at] > '9' || id > 0xffffffffu)
                throw UsageError("--decode: expected ids, got " + list.substr(at, 40));
            id = id * 10 + static_cast<std::uint64_t>(list[at] - '0');
        }
        ids.push_back(static_cast<Token>(std::min<std::uint64_t>(id, 0xffffffffu)));
    }
    for (const Token one : ids)
        if (one >= tokenizer.vocab_size())
            throw host::Error("--decode: expected ids below " + with_separators(tokenizer.vocab_size()) + ", got " +
                              with_separators(one));
    const std::string text = host::detokenize(tokenizer, ids, {.show_special = options.special});
    if (options.common.json)
        std::printf("%s\n", Json{{"n_tokens", ids.size()}, {"text", text}}.dump().c_str());
    else
        std::printf("%s\n", text.c_str());
}

/// The texts of a file with a JSON string on each line.
std::vector<std::string> read_lines(const std::string& path) {
    std::istringstream lines(read_text_file(path));
    std::vector<std::string> texts;
    for (std::string text; std::getline(lines, text);) {
        const Json line = read_json(text);
        if (!line.is_string())
            throw host::Error(path + ": line " + std::to_string(texts.size() + 1) + ": expected a JSON string, got " +
                              text.substr(0, 40));
        texts.push_back(line.get<std::string>());
    }
    return texts;
}

/// CPU time: the verb has one thread, and what else the machine does takes none of it.
void print_speed(const IdsOptions& options, const host::Opened& opened, const std::vector<std::string>& texts) {
    std::size_t n_bytes = 0, n_tokens = 0;
    const std::clock_t begin = std::clock();
    for (const std::string& text : texts) {
        n_bytes += text.size();
        n_tokens += opened.tokens(text, {.parse_special = options.special}).size();
    }
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (options.common.json)
        std::printf("%s\n", Json{{"n_bytes", n_bytes}, {"n_tokens", n_tokens}, {"seconds", seconds}}.dump().c_str());
    else
        std::printf("%s bytes, %s tokens, %.3f s, %.1f MB/s\n", with_separators(n_bytes).c_str(),
                    with_separators(n_tokens).c_str(), seconds,
                    static_cast<double>(n_bytes) / 1e6 / std::max(seconds, 1e-9));
}

void tokenize(IdsOptions& options) {
    const int n_given =
        options.text.has_value() + options.ids.has_value() + !options.file.empty() + !options.lines.empty();
    if (n_given == 0) throw UsageError("-p: expected a text, got none");
    if (n_given > 1) throw UsageError("-p, -f, --jsonl, --decode: expected one of them, got several");
    if (options.pair && !options.text && options.file.empty())
        throw UsageError("--pair: expected with -p or -f, got neither");
    if (options.offsets && options.pair) throw UsageError("--offsets: expected one text, got --pair");
    if (options.speed && options.ids) throw UsageError("--speed: expected with -p, -f or --jsonl, got --decode");
    need_model(options.model);
    settle(options.common);
    const convert::OpenedTokenizer in_use = convert::open_tokenizer(options.model);
    const host::Opened& opened = in_use.opened;
    const Tokenizer& tokenizer = opened.need_tokenizer();
    if (options.ids == "-")
        for (std::string line; read_input_line(line);) print_text(options, tokenizer, line);
    else if (options.ids)
        print_text(options, tokenizer, *options.ids);
    else {
        const std::vector<std::string> texts =
            !options.lines.empty() ? read_lines(options.lines)
                                   : std::vector{options.text ? *options.text : read_text_file(options.file)};
        if (options.speed) return print_speed(options, opened, texts);
        const TokenizeOptions how{.parse_special = options.special};
        for (const std::string& text : texts) {
            if (options.offsets) {
                const auto [tokens, places] = host::tokenize_with_places(tokenizer, text, how);
                print_ids(options, tokenizer, {tokens, {}}, places);
                continue;
            }
            print_ids(options, tokenizer,
                      options.pair ? opened.tokens(text, *options.pair, how)
                                   : host::TokenizedPair{opened.tokens(text, how), {}},
                      {});
        }
    }
}

}  // namespace

void add_tokenize(CLI::App& app) {
    const auto declare = [](const Verb& verb, IdsOptions& o) {
        verb.model(o.model,
                   "a Fovea file, a tokenizer.json, SentencePiece model, vocab.txt, vocab.json or GGUF file, or a "
                   "folder with one");
        verb.text("-p,--prompt", o.text, "the text");
        verb.text("--pair", o.pair, "a second text, for the model's template of two");
        verb.input("-f,--file", o.file, "read the text from a file (- is standard input)");
        verb.input("--jsonl", o.lines, "a text on each line, a JSON string; an answer on each");
        verb.text("--decode", o.ids, "the text of these ids (- reads a list from each line)", "IDS");
        verb.flag("--special", o.special, "read <|name|> in the text as that special token, and show it with --decode");
        verb.flag("--pieces", o.pieces, "the bytes that each id stands for, beside it");
        verb.flag("--offsets", o.offsets, "the characters of the text that each id stands for, beside it");
        verb.flag("--speed", o.speed, "print the CPU time that the texts take instead of their ids");
        verb.common(o.common);
    };
    add_verb<IdsOptions>(app, "tokenize", "A text's token ids on one line, or the text of ids", tokenize, declare);
}

}  // namespace fovea
