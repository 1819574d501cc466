// No tensor of a source is left out in silence: whatever is changed of one changes the file, or a note names it.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "convert/formats/gguf.h"
#include "convert/formats/safetensors.h"
#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// The bytes of a .safetensors file with every element of one tensor changed a little.
std::string changed(std::string file, const nlohmann::json& tensor) {
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), sizeof header);
    const std::string type = tensor["dtype"];
    const std::size_t width = type == "F32" ? 4 : type == "F16" || type == "BF16" ? 2 : 1;
    const std::size_t begin = 8 + header + tensor["data_offsets"][0].get<std::size_t>(),
                      end = 8 + header + tensor["data_offsets"][1].get<std::size_t>();
    for (std::size_t at = begin; at + width <= end; at += width)
        file[at + (width == 4 ? 2 : 0)] = static_cast<char>(file[at + (width == 4 ? 2 : 0)] ^ 0x20);
    return file;
}

/// What a folder converts to, and its notes; or the line that refuses it.
struct Made {
    std::string bytes;
    std::vector<std::string> notes;
    bool is_refused = false;

    explicit Made(const fs::path& folder) {
        const std::string line = refusal_of([&] {
            ModelSource source = read_source({.source = folder});
            notes = source.notes;
            source.tokenizer.clear();
            const AlignedBytes file = write_bytes(source, write_options({}, source));
            bytes.assign(reinterpret_cast<const char*>(file.data()), file.size());
        });
        is_refused = !line.empty();
        if (is_refused) bytes = line;
    }
    [[nodiscard]] bool says(const char* words) const {
        return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) { return contains(note, words); });
    }
};

/// A folder's tensors that nothing in the file depends on and no note speaks of.
std::vector<std::string> silent_tensors(const fs::path& folder) {
    std::vector<std::string> silent;
    const TemporaryFolder copy;
    fs::copy(folder, copy / "model", fs::copy_options::recursive);
    const Made whole(copy / "model");
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() != ".safetensors") continue;
        const std::string file = read_text(entry.path());
        std::uint64_t header = 0;
        std::memcpy(&header, file.data(), sizeof header);
        const auto tensors = nlohmann::json::parse(file.substr(8, header));
        const Safetensors read = read_safetensors_file(entry.path());
        for (const auto& [name, tensor] : tensors.items()) {
            if (name == "__metadata__") continue;
            write_text(copy / "model" / entry.path().filename(), changed(file, tensor));
            const bool is_known = is_saved_buffer(name, read.tensors.at(name)) ||
                                  whole.says("left out, as this model") ||
                                  whole.says("the model of texts is read alone");
            if (Made(copy / "model").bytes == whole.bytes && !is_known) silent.push_back(name);
        }
        write_text(copy / "model" / entry.path().filename(), file);
    }
    return silent;
}

/// The same of a GGUF file.
std::vector<std::string> silent_gguf_tensors(const fs::path& path) {
    std::vector<std::string> silent;
    const TemporaryFolder folder;
    const std::string file = read_text(path);
    write_text(folder / "model.gguf", file);
    const Made whole(folder / "model.gguf");
    if (whole.is_refused) return {};  // blocks that no type of ours holds as they are
    Mapping mapping;
    REQUIRE(map_file(path.c_str(), mapping).ok());
    const std::byte* const begin = mapping.bytes().data();
    const Gguf read(path, std::move(mapping));
    for (const auto& [name, tensor] : read.tensors()) {
        const auto at = static_cast<std::size_t>(tensor.data - begin) + tensor.blocks->n_bytes - 2;
        const std::uint64_t n_blocks = tensor.shape.back() / tensor.blocks->n_elements;  // those of a row
        std::string odd = file;
        for (std::uint64_t i = 0; i < n_blocks; ++i)
            odd[at + i * tensor.blocks->n_bytes] = static_cast<char>(odd[at + i * tensor.blocks->n_bytes] ^ 0x20);
        write_text(folder / "model.gguf", odd);
        if (Made(folder / "model.gguf").bytes == whole.bytes && !whole.says("left out, as this model"))
            silent.push_back(name);
    }
    return silent;
}

}  // namespace

TEST_CASE("tensors: what the file does not depend on is in a note, or computed here") {
    std::size_t n_folders = 0;
    for (const char* goldens : {"models", "families", "encoders", "pairs", "speech"})
        for (const auto& entry : fs::directory_iterator(fs::path(FOVEA_GOLDEN_DIR) / goldens)) {
            const std::string name = entry.path().string();
            CAPTURE(name);
            const std::vector<std::string> silent = silent_tensors(entry.path());
            const std::string first = silent.empty() ? "" : silent.front();
            CAPTURE(first);
            CHECK(silent.empty());
            ++n_folders;
        }
    CHECK(n_folders > 100);
    for (const char* goldens : {"gguf", "families_gguf", "encoders_gguf"})
        for (const auto& entry : fs::recursive_directory_iterator(fs::path(FOVEA_GOLDEN_DIR) / goldens)) {
            if (entry.path().extension() != ".gguf") continue;
            const std::string name = entry.path().string();
            CAPTURE(name);
            const std::vector<std::string> silent = silent_gguf_tensors(entry.path());
            const std::string first = silent.empty() ? "" : silent.front();
            CAPTURE(first);
            CHECK(silent.empty());
        }
}

TEST_CASE("tensors: what a model has no use for is named; a copy of what it uses, and what it computes, is not") {
    const TemporaryFolder folder;
    fs::copy(fs::path(FOVEA_GOLDEN_DIR) / "encoders/bert_sentence", folder / "model", fs::copy_options::recursive);
    const fs::path path = folder / "model/model.safetensors";
    const std::string file = read_text(path);
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), sizeof header);
    const auto tensors = nlohmann::json::parse(file.substr(8, header));
    const auto with = [&](const char* name, const char* like) {
        nlohmann::json more = tensors;
        const std::size_t n_data = file.size() - 8 - header;
        const std::size_t begin = tensors[like]["data_offsets"][0], end = tensors[like]["data_offsets"][1];
        more[name] = tensors[like];
        more[name]["data_offsets"] = {n_data, n_data + end - begin};
        const std::string text = more.dump();
        const std::uint64_t n = text.size();
        std::string bytes(reinterpret_cast<const char*>(&n), sizeof n);
        bytes += text + file.substr(8 + header) + file.substr(8 + header + begin, end - begin);
        write_text(path, bytes);
        return Made(folder / "model");
    };
    const std::string like = "embeddings.LayerNorm.weight";
    REQUIRE(tensors.contains(like));
    CHECK(!with("embeddings.position_ids", like.c_str()).says("position_ids"));
    CHECK(!with("cls.copy", like.c_str()).says("cls.copy"));
    CHECK(contains(with("other.weight", like.c_str()).bytes, "other.weight: expected only tensors"));
}
