#include "convert/writer/file_header.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <tuple>

#include "convert/quantize/calibration.h"
#include "convert/quantize/quantize.h"
#include "fovea/checksum.h"
#include "host/base/error.h"

namespace fovea {
namespace {

using Bytes = std::vector<std::byte>;

void append(Bytes& bytes, const void* data, std::size_t n) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), first, first + n);
}

void pad_to(Bytes& bytes, std::uint64_t multiple) { bytes.resize(round_up(bytes.size(), multiple)); }

std::uint8_t u8(auto value) { return static_cast<std::uint8_t>(value); }

void append_record(Bytes& bytes, RecordTag tag, StackIndex stack, std::uint32_t index, const void* payload,
                   std::size_t n, std::uint16_t flags = 0) {
    const RecordHeader header{static_cast<std::uint32_t>(tag), static_cast<std::uint32_t>(n), flags,
                              static_cast<std::uint16_t>(stack), index};
    append(bytes, &header, sizeof header);
    append(bytes, payload, n);
    pad_to(bytes, 8);
}

/// The bytes of a record's fields, as they stand in memory.
struct FieldWriter {
    Bytes bytes;

    void operator()(const char*, const auto& field, auto, auto) { append(bytes, &field, sizeof field); }
    void wide(const char* name, std::uint32_t field, auto least, auto most) { (*this)(name, field, least, most); }
    void flags(const auto&... flag) { (bytes.push_back(std::byte{flag}), ...); }
    void skip(std::size_t n) { bytes.resize(bytes.size() + n); }
    /// Leaves out zeros at the end, down to `least` bytes.
    void shorten(std::size_t least) {
        while (bytes.size() > least && bytes.back() == std::byte{0}) bytes.pop_back();
    }
};

void append_stack(Bytes& bytes, const Stack& s, StackIndex index) {
    if (s.n_layers == 0) return;
    FieldWriter stack;
    for_each_stack_field(s, stack);
    stack.shorten(kLeastStackRecordBytes);
    append_record(bytes, RecordTag::stack, index, 0, stack.bytes.data(), stack.bytes.size());
    for (std::uint32_t i = 0; i < s.n_blocks; ++i) {
        FieldWriter block;
        for_each_block_field(s.blocks[i], block);
        block.shorten(kLeastBlockRecordBytes);
        append_record(bytes, RecordTag::block, index, i, block.bytes.data(), block.bytes.size());
    }
    if (s.adapter_rank) {  // a reader that does not know it would take the file for a model without its tensors
        FieldWriter adapter;
        for_each_adapter_field(s, adapter);
        append_record(bytes, RecordTag::adapter, index, 0, adapter.bytes.data(), adapter.bytes.size(), kCritical);
    }
    if (s.recurrent.kind != Recurrence::none) {
        FieldWriter recurrent;
        for_each_recurrent_field(s.recurrent, recurrent);
        recurrent.shorten(kLeastRecurrentRecordBytes);
        append_record(bytes, RecordTag::recurrent, index, 0, recurrent.bytes.data(), recurrent.bytes.size(), kCritical);
    }
    if (s.sound.is_speech()) {  // a reader that does not know it would find too many tensors
        FieldWriter sound;
        for_each_sound_field(s.sound, sound);
        append_record(bytes, RecordTag::sound, index, 0, sound.bytes.data(), sound.bytes.size(), kCritical);
    }
    for (std::uint32_t i = 0; i < s.n_head_maps(); ++i) {
        FieldWriter map;
        for_each_head_map_field(s.head[i], map);
        append_record(bytes, RecordTag::head_map, index, i, map.bytes.data(), map.bytes.size());
    }
    if (!s.layer_blocks.empty())
        append_record(bytes, RecordTag::layer_blocks, index, 0, s.layer_blocks.data(), s.layer_blocks.size());
}

Bytes info_bytes(const ModelSource& source) {
    Bytes bytes;
    for (const auto& [key, value] : source.info) {
        const std::uint32_t sizes[2] = {static_cast<std::uint32_t>(key.size()),
                                        static_cast<std::uint32_t>(value.size())};
        append(bytes, sizes, sizeof sizes);
        append(bytes, key.data(), key.size());
        append(bytes, value.data(), value.size());
        pad_to(bytes, 4);
    }
    return bytes;
}

/// If a tensor's layer uses another layer's bytes, that layer; else its own.
std::uint32_t stored_layer(const ModelSource& source, const TensorSpec& spec) {
    const std::vector<std::uint32_t>& layers = source.shared_layers[static_cast<std::size_t>(spec.stack)];
    return layers.empty() || spec.role < Role::attention_norm ? spec.layer : layers.at(spec.layer);
}

/// The type that options.types has for it; null: none.
const Type* chosen_type(const WriteOptions& options, const TensorSpec& spec) {
    if (!options.types) return nullptr;
    const auto entry = options.types->find(key_of(spec));
    return entry == options.types->end() ? nullptr : &entry->second;
}

/// The file's configuration: the source's, and whether inputs have column scales.
Config config_of(const ModelSource& source, const WriteOptions& options) {
    Config config = source.config;
    if (!options.calibration) return config;
    Stack& stack = options.calibration->stack == StackIndex::encoder ? config.encoder : config.decoder;
    stack.output_columns |= !options.calibration->head_columns.empty();
    for (std::uint32_t i = 0; i < stack.n_blocks; ++i)
        stack.blocks[i].column_scales |= !options.calibration->columns.empty();
    return config;
}

void place_tensors(const ModelSource& source, const Config& config, const WriteOptions& options, FileHead& head) {
    const auto place = [&](TensorSpec spec) {
        if (const std::uint32_t stored = stored_layer(source, spec); stored != spec.layer) {
            TensorRecord r = *std::find_if(head.records.begin(), head.records.end(), [&](const TensorRecord& record) {
                return record.role == static_cast<std::uint16_t>(spec.role) && record.layer == stored &&
                       record.stack == static_cast<std::uint16_t>(spec.stack);
            });
            r.layer = spec.layer;
            head.shared.push_back(r);
            return;
        }
        // A source's quantized embeddings stay as they are, and quants lie in panels.
        const bool own_types = options.as_source && source.type_of;
        const Type* chosen = chosen_type(options, spec);
        if (chosen) spec.layout = Layout::panels;
        if (own_types && spec.role == Role::token_embedding && is_quantized(source.type_of(spec)))
            spec.layout = Layout::panels;
        const bool panels = spec.layout == Layout::panels;
        const bool as_it_is = panels && own_types;
        const Type type = chosen     ? *chosen
                          : as_it_is ? source.type_of(spec)
                                     : stored_type(spec, options.type, options.exact_tables);
        TensorRecord r{};
        r.role = static_cast<std::uint16_t>(spec.role);
        r.stack = static_cast<std::uint16_t>(spec.stack);
        r.layer = spec.layer;
        r.layout = u8(spec.layout);
        r.type = u8(type);
        r.flags = is_columns(spec.role) ? kCritical : 0;  // readers that know no column scales must refuse
        r.n_rows = spec.n_rows;
        r.n_cols = spec.n_cols;
        if (panels && is_quantized(type) && options.calibration)
            r.n_outliers = static_cast<std::uint32_t>(options.calibration->outliers_of(spec).size());
        r.panel_stride = panels ? panel_stride_for(type, spec.n_cols, r.n_outliers) : 0;
        r.offset = round_up(head.weights_bytes, kSectionAlignment);
        r.bytes = tensor_bytes(spec.layout, type, spec.n_rows, spec.n_cols, r.panel_stride);
        head.weights_bytes = r.offset + r.bytes;
        head.specs.push_back(spec);
        head.records.push_back(r);
    };
    if (config.encoder.n_layers) for_each_tensor(config.encoder, StackIndex::encoder, place);
    if (config.decoder.n_layers) for_each_tensor(config.decoder, StackIndex::decoder, place);
}

/// The directory of tensors: those with bytes of their own and those without, in order.
std::vector<TensorRecord> directory_of(const FileHead& head) {
    std::vector<TensorRecord> all = head.records;
    all.insert(all.end(), head.shared.begin(), head.shared.end());
    std::stable_sort(all.begin(), all.end(), [](const TensorRecord& a, const TensorRecord& b) {
        return std::tie(a.stack, a.layer, a.role) < std::tie(b.stack, b.layer, b.role);
    });
    return all;
}

std::span<const std::byte> between(const Bytes& bytes, std::uint64_t offset, std::uint64_t n) {
    return std::span(bytes).subspan(offset, n);
}

}  // namespace

/// The one place where padding between panels could be added, if strides that are powers of two prove slow.
std::uint64_t panel_stride_for(Type type, std::uint32_t n_cols, std::uint32_t n_outliers) noexcept {
    return round_up(outliers_at(type, n_cols) + n_outliers * kOutlierBytes, kSectionAlignment);
}

FileHead make_head(const ModelSource& source, const WriteOptions& options) {
    const Config stored = config_of(source, options);
    require(check(stored));
    FileHead head;
    place_tensors(source, stored, options, head);

    struct Part {
        SectionKind kind;
        const void* data;
        std::uint64_t bytes;
    };
    Bytes config;
    append_stack(config, stored.encoder, StackIndex::encoder);
    append_stack(config, stored.decoder, StackIndex::decoder);
    const Bytes info = info_bytes(source);
    const std::vector<TensorRecord> tensors = directory_of(head);
    std::vector<Part> parts = {
        {SectionKind::config, config.data(), config.size()},
        {SectionKind::tensors, tensors.data(), tensors.size() * sizeof(TensorRecord)},
        {SectionKind::info, info.data(), info.size()},
    };
    if (!source.tokenizer.empty())
        parts.push_back({SectionKind::tokenizer, source.tokenizer.data(), source.tokenizer.size()});

    FileHeader header{};
    std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
    header.major = kFormatMajor;
    header.minor = kFormatMinor;
    header.n_sections = static_cast<std::uint32_t>(parts.size() + 1);
    std::vector<SectionRecord> directory;
    head.bytes.resize(round_up(sizeof header + header.n_sections * sizeof(SectionRecord), kSectionAlignment));
    for (const Part& part : parts) {
        SectionRecord r{};
        r.kind = static_cast<std::uint32_t>(part.kind);
        r.offset = head.bytes.size();
        r.bytes = part.bytes;
        append(head.bytes, part.data, part.bytes);
        pad_to(head.bytes, kSectionAlignment);
        directory.push_back(r);
    }
    pad_to(head.bytes, options.weights_alignment);
    SectionRecord weights{};
    weights.kind = static_cast<std::uint32_t>(SectionKind::weights);
    weights.offset = head.bytes.size();
    weights.bytes = head.weights_bytes;
    directory.push_back(weights);
    header.file_bytes = weights.offset + weights.bytes;
    std::memcpy(head.bytes.data(), &header, sizeof header);
    std::memcpy(head.bytes.data() + sizeof header, directory.data(), directory.size() * sizeof(SectionRecord));
    return head;
}

void seal(FileHead& head, std::uint32_t weights_crc) {
    FileHeader header;
    std::memcpy(&header, head.bytes.data(), sizeof header);
    const std::uint64_t directory_bytes = header.n_sections * sizeof(SectionRecord);
    for (std::uint64_t at = sizeof header; at < sizeof header + directory_bytes; at += sizeof(SectionRecord)) {
        SectionRecord r;
        std::memcpy(&r, head.bytes.data() + at, sizeof r);
        const bool weights = r.kind == static_cast<std::uint32_t>(SectionKind::weights);
        r.crc = weights ? weights_crc : crc32c(between(head.bytes, r.offset, r.bytes));
        std::memcpy(head.bytes.data() + at, &r, sizeof r);
    }
    header.directory_crc = crc32c(between(head.bytes, sizeof header, directory_bytes));
    std::memcpy(head.bytes.data(), &header, sizeof header);
    header.header_crc = crc32c(between(head.bytes, 0, offsetof(FileHeader, header_crc)));
    std::memcpy(head.bytes.data(), &header, sizeof header);
}

}  // namespace fovea
