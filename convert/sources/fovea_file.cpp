#include "convert/sources/fovea_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "fovea/model.h"
#include "host/base/elements.h"
#include "host/base/error.h"
#include "host/model/listing.h"

namespace fovea {
namespace {

/// The bytes of the section of that kind; empty where there is none.
std::span<const std::byte> section_bytes(const Model& model, std::string_view kind) {
    for (const SectionInfo& section : sections(model))
        if (section.kind == kind) return model.bytes().subspan(section.offset, section.bytes);
    return {};
}

class StoredTensors {
public:
    explicit StoredTensors(Mapping mapping, const Model& model)
        : mapping_(std::move(mapping)), weights_(section_bytes(model, "weights")) {
        const auto records = section_bytes(model, "tensors");
        records_.resize(records.size() / sizeof(TensorRecord));
        if (!records_.empty()) std::memcpy(records_.data(), records.data(), records_.size() * sizeof(TensorRecord));
    }

    [[nodiscard]] const std::vector<TensorRecord>& records() const { return records_; }

    void read_rows(const TensorSpec& spec, std::uint32_t row_begin, std::uint32_t n_rows, float* out) const {
        const auto found = std::find_if(records_.begin(), records_.end(), [&](const TensorRecord& r) {
            return r.role == static_cast<std::uint16_t>(spec.role) && r.layer == spec.layer &&
                   r.stack == static_cast<std::uint16_t>(spec.stack) && r.expert == 0;
        });  // there is one: the file was validated
        const std::byte* data = weights_.data() + found->offset;
        const auto type = static_cast<Type>(found->type);
        const bool panels = found->layout == static_cast<std::uint8_t>(Layout::panels);  // whatever is wanted of them
        for (std::uint32_t row = row_begin; row < row_begin + n_rows; ++row) {
            const std::byte* start = panels ? data + row / kLanes * found->panel_stride : data;
            const std::uint64_t first = panels ? row % kLanes : std::uint64_t{row} * spec.n_cols;
            const std::uint64_t step = panels ? kLanes : 1;
            for (std::uint32_t col = 0; col < spec.n_cols; ++col)
                *out++ = load_element(start, type, first + col * step);
        }
    }

private:
    Mapping mapping_;
    std::span<const std::byte> weights_;
    std::vector<TensorRecord> records_;
};

/// The info section was validated with the rest: its entries lie within it.
std::vector<std::pair<std::string, std::string>> read_info(std::span<const std::byte> bytes) {
    std::vector<std::pair<std::string, std::string>> info;
    while (bytes.size() >= 8) {
        std::uint32_t sizes[2];
        std::memcpy(sizes, bytes.data(), sizeof sizes);
        const char* text = reinterpret_cast<const char*>(bytes.data()) + sizeof sizes;
        info.emplace_back(std::string(text, sizes[0]), std::string(text + sizes[0], sizes[1]));
        const std::uint64_t entry = round_up(sizeof sizes + std::uint64_t{sizes[0]} + sizes[1], 4);
        bytes = bytes.subspan(std::min<std::uint64_t>(entry, bytes.size()));
    }
    return info;
}

/// The layer whose bytes each of a stack's layers uses: the first that has all of its tensors in the same places.
std::vector<std::uint32_t> shared_layers(const std::vector<TensorRecord>& records, std::uint16_t stack) {
    std::vector<std::vector<std::pair<std::uint16_t, std::uint64_t>>> places;
    for (const TensorRecord& r : records) {
        if (r.stack != stack || r.role < static_cast<std::uint16_t>(Role::attention_norm)) continue;
        if (r.layer >= places.size()) places.resize(r.layer + std::size_t{1});
        places[r.layer].emplace_back(r.role, r.offset);
    }
    std::map<std::vector<std::pair<std::uint16_t, std::uint64_t>>, std::uint32_t> first;
    std::vector<std::uint32_t> layers;
    for (std::uint32_t i = 0; i < places.size(); ++i)
        layers.push_back(places[i].empty() ? i : first.emplace(places[i], i).first->second);
    return layers;
}

/// Leaves out the tensors of layers that use another layer's bytes as a whole.
void drop_shared(const ModelSource& source, std::vector<TensorRecord>& records) {
    std::erase_if(records, [&](const TensorRecord& r) {
        return r.stack < 2 && r.role >= static_cast<std::uint16_t>(Role::attention_norm) &&
               source.shared_layers[r.stack].at(r.layer) != r.layer;
    });
}

/// To run a model whose tensors share bytes is safe; its copy would have them all, and be larger than any disk.
void refuse_overlaps(std::vector<TensorRecord> records, const std::filesystem::path& path) {
    std::ranges::sort(records, {}, &TensorRecord::offset);
    const auto overlap = [](const TensorRecord& a, const TensorRecord& b) { return b.offset - a.offset < a.bytes; };
    if (std::ranges::adjacent_find(records, overlap) != records.end())
        throw host::Error(path.string() + ": expected tensors with bytes of their own, got two that share some");
}

}  // namespace

ModelSource read_fovea_file(const std::filesystem::path& path, Mapping mapping) {
    Model model;
    require(open_model(mapping.bytes(), model, {.verify_checksums = true}), path.string());
    ModelSource source;
    source.config = model.config();  // its layer_blocks point into the mapping, which the reader below keeps
    source.info = read_info(section_bytes(model, "info"));
    const auto tokenizer = model.tokenizer_bytes();
    source.tokenizer.assign(tokenizer.begin(), tokenizer.end());
    const auto tensors = std::make_shared<const StoredTensors>(std::move(mapping), model);
    for (const TensorRecord& r : tensors->records()) {
        if (r.type > static_cast<std::uint8_t>(Type::bf16))
            throw host::Error(path.string() + ": tensor " + role_name(r.role) +
                              ": expected f32, f16 or bf16 to convert from, got a quantized type; "
                              "convert the model that it was made of");
        if (r.layout == static_cast<std::uint8_t>(Layout::panels)) source.type = static_cast<Type>(r.type);
    }
    for (std::uint16_t stack = 0; stack < 2; ++stack)
        source.shared_layers[stack] = shared_layers(tensors->records(), stack);
    std::vector<TensorRecord> own = tensors->records();
    drop_shared(source, own);
    refuse_overlaps(std::move(own), path);
    source.read_rows = [tensors](const TensorSpec& spec, std::uint32_t row_begin, std::uint32_t n_rows, float* out) {
        tensors->read_rows(spec, row_begin, n_rows, out);
    };
    return source;
}

}  // namespace fovea
