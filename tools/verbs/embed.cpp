// fovea embed: a model, or a form of answers, as an assembler file of bytes, to be linked into firmware and used where it lies.
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "fovea/mapping.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/output_file.h"
#include "host/base/words.h"
#include "host/grammar/grammar.h"
#include "tools/options/opened.h"
#include "tools/options/options.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/verbs.h"

namespace fovea {
namespace {

struct EmbedOptions {
    CommonOptions common;
    std::string input, output, symbol;
};

void check_symbol(const std::string& symbol) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    bool good = !symbol.empty() && is_letter(symbol[0]);
    for (const char c : symbol) good = good && (is_letter(c) || (c >= '0' && c <= '9'));
    if (!good)
        throw UsageError("--symbol: expected a name as C has them, got " + (symbol.empty() ? "nothing" : symbol));
}

/// The file as words, which both assembler and engine read as little-endian, and its last odd bytes.
void write_bytes(std::ofstream& out, std::span<const std::byte> bytes) {
    constexpr std::size_t kWord = 4, kWordsInLine = 12;
    std::string line;
    std::array<char, 16> word;
    std::size_t at = 0;
    for (; at + kWord <= bytes.size(); at += kWord) {
        std::uint32_t value;
        std::memcpy(&value, bytes.data() + at, kWord);
        std::snprintf(word.data(), word.size(), "0x%x", static_cast<unsigned>(value));
        line += (line.empty() ? "    .4byte " : ",") + std::string(word.data());
        if (at / kWord % kWordsInLine != kWordsInLine - 1) continue;
        out << line << '\n';
        line.clear();
    }
    if (!line.empty()) out << line << '\n';
    for (; at < bytes.size(); ++at) out << "    .byte " << std::to_integer<unsigned>(bytes[at]) << '\n';
}

/// A file that is to be embedded, checked as far as it can be.
struct Embedded {
    Mapping form;
    host::Opened model;

    [[nodiscard]] bool is_form() const { return !form.bytes().empty(); }
    [[nodiscard]] std::span<const std::byte> bytes() const { return is_form() ? form.bytes() : model.model.bytes(); }
};

[[nodiscard]] Embedded open_input(const std::string& path) {
    Embedded input;
    if (Mapping file; map_file(path.c_str(), file).ok() && grammar::begins_form(file.bytes())) {
        try {
            grammar::check_form_for_board(file.bytes());
        } catch (const grammar::GrammarError& error) {
            throw host::Error(path + ": " + error.what());
        }
        input.form = std::move(file);
        return input;
    }
    input.model = open_path(path, {.verify_checksums = true});
    return input;
}

void embed(EmbedOptions& options) {
    need_model(options.input);
    if (options.output.empty()) throw UsageError("-o: expected the file to write, got none");
    if (!options.symbol.empty()) check_symbol(options.symbol);
    settle(options.common);
    const Embedded input = open_input(options.input);
    if (options.symbol.empty()) options.symbol = input.is_form() ? "fovea_form" : "fovea_model";
    const std::span<const std::byte> bytes = input.bytes();
    const std::string &begin = options.symbol, end = begin + "_end";
    OutputFile file(options.output);
    file.stream() << "/* " << with_separators(bytes.size()) << " bytes, a Fovea "
                  << (input.is_form() ? "form" : "model") << ", for a C compiler's assembler: GNU"
                  << " or Clang, any little-endian ELF target or\n"
                  << " * WebAssembly. In C:\n"
                  << " *     extern const unsigned char " << begin << "[], " << end << "[];\n"
                  << " */\n"
                  << "#ifdef __wasm__\n"
                  << "    .section .rodata." << begin << ", \"\", @\n"
                  << "    .type " << begin << ", @object\n"
                  << "    .type " << end << ", @object\n"
                  << "#else\n"
                  << "    .section .note.GNU-stack, \"\", %progbits\n"
                  << "    .section .rodata." << begin << ", \"a\", %progbits\n"
                  << "    .type " << begin << ", %object\n"
                  << "    .type " << end << ", %object\n"
                  << "#endif\n"
                  << "    .balign 64\n"
                  << "    .globl " << begin << "\n"
                  << "    .globl " << end << "\n"
                  << "    .size " << begin << ", " << bytes.size() << "\n"
                  << "    .size " << end << ", 1\n"
                  << begin << ":\n";
    write_bytes(file.stream(), bytes);
    file.stream() << end << ":\n    .byte 0\n";
    file.close();
    if (options.common.json)
        std::printf("%s\n",
                    json_text(Json{{"file", options.output}, {"symbol", begin}, {"bytes", bytes.size()}}).c_str());
}

}  // namespace

void add_embed(CLI::App& app) {
    auto options = std::make_shared<EmbedOptions>();
    CLI::App& verb = add_verb(app, "embed", "An assembler file to link a model into a program or firmware");
    add_model(verb, options->input, "a Fovea file, or a form of answers that fovea grammar wrote");
    add_text(verb, "-o,--output", options->output, "the file to write, such as model.S").type_name("FILE");
    add_text(verb, "--symbol", options->symbol,
             "name of the first byte (default: fovea_model or fovea_form; NAME_end is the end)")
        .type_name("NAME");
    add_common(verb, options->common);
    set_action(verb, [options] { embed(*options); });
}

}  // namespace fovea
