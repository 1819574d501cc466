// fovea embed: a model as an assembler file of bytes, to be linked into firmware and used where it lies.
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "convert/refusal.h"
#include "opened.h"
#include "options.h"
#include "output_file.h"
#include "report.h"
#include "verbs/verbs.h"

namespace fovea {
namespace {

struct EmbedOptions {
    CommonOptions common;
    std::string model, output, symbol = "fovea_model";
};

void check_symbol(const std::string& symbol) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    bool good = !symbol.empty() && is_letter(symbol[0]);
    for (const char c : symbol) good = good && (is_letter(c) || (c >= '0' && c <= '9'));
    if (!good)
        throw Refusal("--symbol: expected a name as C has them, got " + (symbol.empty() ? "nothing" : symbol), 2);
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

void embed(EmbedOptions& options) {
    need_model(options.model);
    if (options.output.empty()) throw Refusal("-o: expected the file to write, got none", 2);
    check_symbol(options.symbol);
    settle(options.common);
    const OpenedModel opened = open_path(options.model, {.verify_checksums = true});
    const std::span<const std::byte> bytes = opened.model.bytes();
    const std::string &begin = options.symbol, end = begin + "_end";
    OutputFile file(options.output);
    file.stream() << "/* " << with_separators(bytes.size())
                  << " bytes, a Fovea model, for a C compiler's assembler: GNU"
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
        std::printf("%s\n", nlohmann::ordered_json{{"file", options.output}, {"symbol", begin}, {"bytes", bytes.size()}}
                                .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                                .c_str());
}

}  // namespace

void add_embed(CLI::App& app) {
    auto options = std::make_shared<EmbedOptions>();
    CLI::App& verb = *app.add_subcommand("embed", "An assembler file to link a model into a program or firmware");
    add_model(verb, options->model);
    add_text(verb, "-o,--output", options->output, "the file to write, such as model.S")->type_name("FILE");
    add_text(verb, "--symbol", options->symbol, "name of the first byte (default: fovea_model; NAME_end is the end)")
        ->type_name("NAME");
    add_common(verb, options->common);
    verb.callback([options] { embed(*options); });
}

}  // namespace fovea
