// fovea embed: a model, or a form of answers, as an assembler file of bytes, to be linked into firmware and used where it lies.
#include <cstring>
#include <utility>

#include "fovea/mapping.h"
#include "host/base/output_file.h"
#include "host/grammar/grammar.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

struct EmbedOptions {
    CommonOptions common;
    std::string input, output, symbol;
};

void check_symbol(const std::string& symbol) {
    constexpr const char* kNameBytes = "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if (symbol.find_first_not_of(kNameBytes) != symbol.npos || (symbol[0] >= '0' && symbol[0] <= '9'))
        throw UsageError("--symbol: expected a name as C has them, got " + symbol);
}

/// The file as words, which both assembler and engine read as little-endian, and its last odd bytes.
void write_bytes(std::ostream& out, std::span<const std::byte> bytes) {
    constexpr std::size_t kWord = 4, kWordsInLine = 12;
    std::string line;
    std::size_t at = 0;
    for (; at + kWord <= bytes.size(); at += kWord) {
        std::uint32_t value;
        std::memcpy(&value, bytes.data() + at, kWord);
        char word[16];
        std::snprintf(word, sizeof word, "0x%x", static_cast<unsigned>(value));
        line += (line.empty() ? "    .4byte " : ",") + std::string(word);
        if (at / kWord % kWordsInLine != kWordsInLine - 1) continue;
        out << line << '\n';
        line.clear();
    }
    if (!line.empty()) out << line << '\n';
    for (; at < bytes.size(); ++at) out << "    .byte " << std::to_integer<unsigned>(bytes[at]) << '\n';
}

/// The file where it is a form of answers that firmware can use; else nothing.
[[nodiscard]] Mapping map_form(const std::string& path) {
    Mapping file;
    if (!map_file(path.c_str(), file).ok() || !grammar::begins_form(file.bytes())) return {};
    try {
        grammar::check_form_for_board(file.bytes());
    } catch (const grammar::GrammarError& error) {
        throw host::Error(path + ": " + error.what());
    }
    return file;
}

void embed(EmbedOptions& options) {
    need_model(options.input);
    if (options.output.empty()) throw UsageError("-o: expected the file to write, got none");
    if (!options.symbol.empty()) check_symbol(options.symbol);
    settle(options.common);
    const Mapping form = map_form(options.input);
    const bool is_form = !form.bytes().empty();
    const host::Opened model = is_form ? host::Opened() : open_path(options.input, {.verify_checksums = true});
    const std::span<const std::byte> bytes = is_form ? form.bytes() : model.model.bytes();
    const std::string kind = is_form ? "form" : "model";
    const std::string begin = options.symbol.empty() ? "fovea_" + kind : options.symbol, end = begin + "_end";
    OutputFile file(options.output);
    file.stream() << "/* " << with_separators(bytes.size()) << " bytes, a Fovea " << kind
                  << ", for a C compiler's assembler: GNU or Clang, any little-endian ELF target or\n"
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
    if (options.common.json) print_line({{"file", options.output}, {"symbol", begin}, {"bytes", bytes.size()}});
}

}  // namespace

void add_embed(CLI::App& app) {
    const auto declare = [](const Verb& verb, EmbedOptions& o) {
        verb.model(o.input, "a Fovea file, or a form of answers that fovea grammar wrote");
        verb.output("-o,--output", o.output, "the file to write, such as model.S");
        verb.text("--symbol", o.symbol,
                  "name of the first byte (default: fovea_model or fovea_form; NAME_end is the end)", "NAME");
        verb.common(o.common);
    };
    add_verb<EmbedOptions>(app, "embed", "An assembler file to link a model into a program or firmware", embed,
                           declare);
}

}  // namespace fovea
