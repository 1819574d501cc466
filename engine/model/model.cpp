// The validator of model files: bytes in, checked views out. What computes relies on what is established here; tokenizer
// sections, forms and saved caches have validators of their own. Numbers from the file are copied, bounded, and only then used.
#include "engine/model/model.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "engine/format/parts.h"
#include "engine/model/kind.h"
#include "fovea/checksum.h"

namespace fovea {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t kMaxSections = 64;

[[nodiscard]] Status invalid(const char* what, std::uint64_t wanted, std::uint64_t had) noexcept {
    return {Code::section_invalid, what, wanted, had};
}

/// Copies a T from the front of `bytes`, which holds at least its size.
template<class T>
[[nodiscard]] T load(Bytes bytes) noexcept {
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

/// Copies a record's fields. Numbers and enumerations are checked with the whole configuration (see check); the largest
/// of the flags, which are bytes of 0 or 1, is kept so that one comparison checks them all.
struct FieldReader {
    const std::uint8_t* at;
    std::uint8_t largest_flag = 0;

    void operator()(const char*, auto& field, auto, auto) noexcept {
        std::memcpy(&field, at, sizeof field);
        at += sizeof field;
    }
    /// Four bytes in the file, fewer here: a number beyond becomes the largest, which is out of every bound.
    template<class T>
    void wide(const char*, T& field, auto, auto) noexcept {
        constexpr T kLargest = static_cast<T>(~T{0});
        std::uint32_t value;
        std::memcpy(&value, at, sizeof value);
        field = value < kLargest ? static_cast<T>(value) : kLargest;
        at += sizeof value;
    }
    void flags(auto&... flag) noexcept {
        ((largest_flag = *at > largest_flag ? *at : largest_flag, flag = *at++), ...);
    }
    void skip(std::size_t n) noexcept { at += n; }
};

/// A record may be shorter than its kBytes of fields (an older writer's: the rest is zero) or longer (a newer writer's:
/// what this reader does not know must be zero).
template<std::size_t kBytes>
[[nodiscard]] Status read_fields(Bytes payload, const char* what, auto for_each_field) noexcept {
    std::uint8_t raw[kBytes] = {};
    std::memcpy(raw, payload.data(), payload.size() < kBytes ? payload.size() : kBytes);
    for (std::size_t i = kBytes; i < payload.size(); ++i)
        if (payload[i] != std::byte{0}) return {Code::unsupported, what, kBytes, payload.size()};
    FieldReader reader{raw};
    for_each_field(reader);
    if (reader.largest_flag > 1) return {Code::config_invalid, "largest flag at most", 1, reader.largest_flag};
    return {};
}

/// Whether this build has the part that a record of the format is for.
[[nodiscard]] constexpr bool reads_record(RecordTag tag) noexcept {
    return tag == RecordTag::adapter ? has(Part::adapters) : tag == RecordTag::sound ? has(Part::vectors) : true;
}

/// One record of the config section into the stack it belongs to.
[[nodiscard]] Status read_record(const RecordHeader& header, Bytes payload, Config& config) noexcept {
    constexpr auto kLastTag = static_cast<std::uint32_t>(has(Part::states) ? RecordTag::recurrent : RecordTag::sound);
    const bool known = header.tag >= static_cast<std::uint32_t>(RecordTag::stack) && header.tag <= kLastTag;
    if (!known || !reads_record(static_cast<RecordTag>(header.tag))) {
        if (!(header.flags & kCritical)) return {};
        return known ? Status{Code::unsupported, "record: left out of this build", 0, 0}
                     : Status{Code::unsupported, "record tag at most", kLastTag, header.tag};
    }
    if (header.stack > 1) return invalid("stack's number at most", 1, header.stack);
    Stack& stack = header.stack == 0 ? config.encoder : config.decoder;
    switch (static_cast<RecordTag>(header.tag)) {
        case RecordTag::stack:
            return read_fields<kStackRecordBytes>(payload, "bytes of a stack record",
                                                  [&](auto& field) { for_each_stack_field(stack, field); });
        case RecordTag::block:
            if (header.index >= kMaxBlocks)
                return invalid("block shapes at most", kMaxBlocks, header.index + std::uint64_t{1});
            return read_fields<kBlockRecordBytes>(
                payload,
                kBlockRecordBytes > 104 ? "bytes of a block record" : "bytes of a block record without experts",
                [&](auto& field) { for_each_block_field(stack.blocks[header.index], field); });
        case RecordTag::head_map:
            if (!has(Part::vectors)) return {Code::unsupported, "vectors: left out of this build", 0, 0};
            if (header.index >= kMaxHeadMaps)
                return invalid("maps of a head at most", kMaxHeadMaps, header.index + std::uint64_t{1});
            return read_fields<kHeadMapRecordBytes>(payload, "bytes of a head map's record", [&](auto& field) {
                for_each_head_map_field(stack.head[header.index], field);
            });
        case RecordTag::adapter:
            if (!has(Part::adapters)) return {};
            return read_fields<kAdapterRecordBytes>(payload, "bytes of an adapter's record",
                                                    [&](auto& field) { for_each_adapter_field(stack, field); });
        case RecordTag::sound:
            if (!has(Part::vectors)) return {};
            return read_fields<kSoundRecordBytes>(payload, "bytes of a sound's record",
                                                  [&](auto& field) { for_each_sound_field(stack.sound, field); });
        case RecordTag::recurrent:
            if (!has(Part::states)) return {};
            return read_fields<kRecurrentRecordBytes>(payload, "bytes of a recurrent part's record", [&](auto& field) {
                for_each_recurrent_field(stack.recurrent, field);
            });
        case RecordTag::layer_blocks:
            stack.layer_blocks = {reinterpret_cast<const std::uint8_t*>(payload.data()), payload.size()};
            return {};
    }
    return {};
}

[[nodiscard]] Status read_config(Bytes section, Config& config) noexcept {
    while (!section.empty()) {
        if (section.size() < sizeof(RecordHeader))
            return invalid("bytes of a record's header", sizeof(RecordHeader), section.size());
        const auto header = load<RecordHeader>(section);
        section = section.subspan(sizeof(RecordHeader));
        if (header.bytes > section.size())
            return invalid("bytes of a configuration record", header.bytes, section.size());
        if (Status status = read_record(header, section.first(header.bytes), config); !status.ok()) return status;
        const std::uint64_t padded = round_up(header.bytes, 8);
        section = section.subspan(padded < section.size() ? static_cast<std::size_t>(padded) : section.size());
    }
    return check(config);
}

/// Calls take(key, value) for every entry.
template<class Take>
[[nodiscard]] Status for_each_info(Bytes section, Take&& take) noexcept {
    while (!section.empty()) {
        if (section.size() < 8) return invalid("bytes of an info entry's lengths", 8, section.size());
        const std::uint64_t key_bytes = load<std::uint32_t>(section),
                            value_bytes = load<std::uint32_t>(section.subspan(4));
        section = section.subspan(8);
        if (key_bytes + value_bytes > section.size())
            return invalid("bytes of an info entry", key_bytes + value_bytes, section.size());
        const char* text = reinterpret_cast<const char*>(section.data());
        take(std::string_view(text, static_cast<std::size_t>(key_bytes)),
             std::string_view(text + key_bytes, static_cast<std::size_t>(value_bytes)));
        const std::uint64_t padded = round_up(key_bytes + value_bytes, 4);
        section = section.subspan(padded < section.size() ? static_cast<std::size_t>(padded) : section.size());
    }
    return {};
}

[[nodiscard]] Status read_info(Bytes section, ModelInfo& info) noexcept {
    return for_each_info(section, [&](std::string_view key, std::string_view value) {
        if (key == "name") info.name = value;
        if (key == "architecture") info.architecture = value;
        if (key == "prompt_suffix") info.prompt_suffix = value;
        if (key == "chat_template") info.chat_template = value;
    });
}

/// Shape, type and place of one tensor record by itself, whatever it is for.
[[nodiscard]] Status check_tensor(const TensorRecord& t, std::uint64_t weights_bytes) noexcept {
    const auto bad = [](const char* what, std::uint64_t wanted, std::uint64_t had) {
        return Status{Code::tensor_invalid, what, wanted, had};
    };
    if (t.layout > static_cast<std::uint8_t>(Layout::panels)) return bad("tensor layout at most", 2, t.layout);
    if (t.type >= kTypeCount) return bad("tensor type at most", kTypeCount - 1, t.type);
    const auto layout = static_cast<Layout>(t.layout);
    const auto type = static_cast<Type>(t.type);
    if (!has(Part::bf16) && type == Type::bf16)
        return {Code::unsupported, "weights of bf16: left out of this build", 0, 0};
    if (!has(Part::gguf_types) && type > Type::q4)
        return {Code::unsupported, "tensor type in this build at most", static_cast<std::uint64_t>(Type::q4), t.type};
    if (layout == Layout::vector && (type != Type::f32 || t.n_rows != 1))
        return bad("rows of an f32 vector", 1, t.n_rows);
    if (layout == Layout::rows && t.type > static_cast<std::uint8_t>(Type::bf16))
        return bad("type of a table at most", static_cast<std::uint64_t>(Type::bf16), t.type);
    if (t.n_rows == 0 || t.n_cols == 0) return bad("rows and columns at least", 1, 0);
    if (std::uint64_t{t.n_rows} * t.n_cols > std::uint64_t{1} << 48)
        return bad("elements at most", std::uint64_t{1} << 48, std::uint64_t{t.n_rows} * t.n_cols);
    if (layout == Layout::panels) {
        std::uint64_t least = panel_bytes(type, t.n_cols);
        if (has(Part::columns)) {  // builds without them refuse the configuration
            const std::uint32_t most = is_quantized(type) && t.n_cols >= kSuperblock ? kMaxOutliers : 0;
            if (t.n_outliers > most) return bad("outlier columns at most", most, t.n_outliers);
            least += t.n_outliers * kOutlierBytes;
        }
        if (t.panel_stride < least || t.panel_stride > least + 65536 || t.panel_stride % kSectionAlignment != 0)
            return bad("panel stride", round_up(least, kSectionAlignment), t.panel_stride);
    } else if (t.panel_stride != 0) {
        return bad("panel stride of a tensor without panels", 0, t.panel_stride);
    } else if (has(Part::columns) && t.n_outliers != 0) {
        return bad("outlier columns of a tensor without panels", 0, t.n_outliers);
    }
    const std::uint64_t bytes = tensor_bytes(layout, type, t.n_rows, t.n_cols, t.panel_stride);
    if (t.bytes != bytes) return bad("tensor bytes", bytes, t.bytes);
    if (t.offset % kSectionAlignment != 0) return bad("a tensor's offset modulo 64", 0, t.offset % kSectionAlignment);
    if (t.offset > weights_bytes || bytes > weights_bytes - t.offset)
        return bad("bytes in the weights section",
                   t.offset > ~std::uint64_t{0} - bytes ? ~std::uint64_t{0} : t.offset + bytes, weights_bytes);
    return {};
}

/// The sort key of the directory, but for the expert, which comes last.
template<class Stack, class Role>
[[nodiscard]] constexpr std::uint64_t order(Stack stack, std::uint32_t layer, Role role) noexcept {
    return static_cast<std::uint64_t>(stack) << 48 | std::uint64_t{layer} << 16 | static_cast<std::uint64_t>(role);
}
[[nodiscard]] std::uint64_t order_of(const TensorRecord& t) noexcept { return order(t.stack, t.layer, t.role); }

/// What reads the input that column scales multiply.
struct ColumnUse {
    Role columns, matrices[3];
};
constexpr ColumnUse kColumnUses[] = {{Role::projections_columns, {Role::query, Role::key, Role::value}},
                                     {Role::attention_output_columns, {Role::attention_output}},
                                     {Role::cross_query_columns, {Role::cross_query}},
                                     {Role::memory_columns, {Role::cross_key, Role::cross_value}},
                                     {Role::cross_output_columns, {Role::cross_output}},
                                     {Role::up_columns, {Role::up}},
                                     {Role::down_columns, {Role::down}},
                                     {Role::output_columns, {Role::output}}};

/// Column scales are powers of two, and of matrices that are quantized; those of outlier columns, whose number each of the matrices
/// states, are 0. A tied table is looked up too, so its other scales are 1. All tensors of lesser roles are there. Adds the matrices
/// that have such columns to n_with.
[[nodiscard]] Status check_columns(const Model& model, const TensorRecord& t, std::uint32_t& n_with) noexcept {
    const auto index = static_cast<StackIndex>(t.stack);
    const std::byte* scales = model.bytes().data() + ModelAccess::offset(model, t);
    const bool tied =
        t.role == static_cast<std::uint16_t>(Role::output_columns) && stack_of(model.config(), index).tied_output;
    std::uint32_t n_outliers = 0;
    for (std::uint32_t i = 0; i < t.n_cols; ++i) {
        std::uint32_t bits;
        std::memcpy(&bits, scales + std::size_t{i} * 4, sizeof bits);
        n_outliers += bits == 0;
        if ((bits & 0x807fffff) != 0 || bits == 0x7f800000 || (tied && bits != 0 && bits != 0x3f800000))
            return {Code::tensor_invalid,
                    tied ? "column scales that are 0 or 1" : "column scales that are powers of two", t.n_cols, i};
    }
    for (const ColumnUse& use : kColumnUses) {
        if (t.role != static_cast<std::uint16_t>(use.columns)) continue;
        for (const Role role : use.matrices) {
            if (role == Role{}) break;
            const TensorRecord* matrix = ModelAccess::find(model, index, t.layer, tied ? Role::token_embedding : role);
            if (!matrix) continue;
            if (!is_quantized(static_cast<Type>(matrix->type)))
                return {Code::unsupported, "type of a matrix with column scales at least",
                        static_cast<std::uint64_t>(Type::q8), matrix->type};
            if (matrix->n_outliers != n_outliers)
                return {Code::tensor_invalid, "outlier columns", n_outliers, matrix->n_outliers};
            n_with += n_outliers != 0;
        }
    }
    return {};
}

/// Whether a section, which lies in the file, has the checksum that the directory states.
[[nodiscard]] Status check_crc(Bytes file, const SectionRecord& s) noexcept {
    const std::uint32_t crc =
        crc32c(file.subspan(static_cast<std::size_t>(s.offset), static_cast<std::size_t>(s.bytes)));
    return crc == s.crc ? Status{} : Status{Code::checksum_mismatch, section_name(s.kind), s.crc, crc};
}

}  // namespace

Status ModelAccess::read_tensors(Bytes section, std::uint64_t weights_bytes, Model& model) noexcept {
    if (section.size() % sizeof(TensorRecord) != 0)
        return invalid("length of the tensor list modulo 64", 0, section.size() % sizeof(TensorRecord));
    const std::uint64_t n = section.size() / sizeof(TensorRecord);
    if (n > 0xffffffffu) return invalid("tensors at most", 0xffffffffu, n);
    model.tensors_ = reinterpret_cast<const TensorRecord*>(section.data());
    model.n_tensors_ = static_cast<std::uint32_t>(n);
    std::uint32_t n_with_outliers = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
        const TensorRecord& t = model.tensors_[i];
        const TensorRecord& last = model.tensors_[i > 0 ? i - 1 : 0];
        if (i > 0 && (order_of(last) > order_of(t) || (order_of(last) == order_of(t) && last.expert >= t.expert)))
            return {Code::tensor_invalid, "out of order: tensor", i, i};
        if (Status status = check_tensor(t, weights_bytes); !status.ok()) return status;
        n_with_outliers += has(Part::columns) && t.n_outliers != 0;
    }
    // Every tensor the configuration calls for must be there, and be what it calls for. No other may have a role that
    // this reader knows, for a session finds tensors by their roles; tensors of unknown roles are skipped if they are
    // not critical. Both lists have the same order, so one walk pairs them.
    Status status;
    std::uint32_t at = 0, n_scaled = 0;  // matrices whose outlier columns have scales
    const auto skip_until = [&](const TensorSpec* want) {
        for (; at < n; ++at) {
            const TensorRecord& t = model.tensors_[at];
            if (want && order_of(t) >= order(want->stack, want->layer, want->role)) return;
            if (is_role(t.role))
                status = {Code::tensor_invalid, "tensors beside what the configuration calls for; the first has role",
                          0, t.role};
            else if (t.flags & kCritical)
                status = {Code::unsupported, "unknown critical tensors; the first has role", 0, t.role};
        }
    };
    const auto is_table = [](const TensorSpec& want) { return want.role == Role::token_embedding; };
    const auto in_panels = [](const TensorRecord& t) { return t.layout == static_cast<std::uint8_t>(Layout::panels); };
    const auto visit = [&](const TensorSpec& want) {
        if (!status.ok()) return;
        skip_until(&want);
        const TensorRecord* t = find(model, want.stack, want.layer, want.role);
        if (!status.ok()) return;
        if (!t || t != model.tensors_ + at)
            status = {Code::tensor_missing, role_name(static_cast<std::uint16_t>(want.role)), want.layer, want.layer};
        else if (t->layout != static_cast<std::uint8_t>(want.layout) && !(is_table(want) && in_panels(*t)))
            status = {Code::tensor_invalid, role_name(t->role), static_cast<std::uint64_t>(want.layout), t->layout};
        else if (t->n_rows != want.n_rows || t->n_cols != want.n_cols)
            status = {Code::tensor_invalid, role_name(t->role), t->n_rows != want.n_rows ? want.n_rows : want.n_cols,
                      t->n_rows != want.n_rows ? t->n_rows : t->n_cols};
        else
            ++at;
        if (has(Part::columns) && status.ok() && is_columns(want.role)) status = check_columns(model, *t, n_scaled);
    };
    for_each_tensor(model.config_.encoder, StackIndex::encoder, visit);
    for_each_tensor(model.config_.decoder, StackIndex::decoder, visit);
    if (status.ok()) skip_until(nullptr);
    if (status.ok() && n_with_outliers != n_scaled)
        status = {Code::tensor_invalid, "matrices whose outlier columns have scales", n_with_outliers, n_scaled};
    return status;
}

Status ModelAccess::read_sections(Model& model) noexcept {
    Bytes known[6] = {};
    bool seen[6] = {};
    const std::uint64_t directory_end = sizeof(FileHeader) + std::uint64_t{model.n_sections_} * sizeof(SectionRecord);
    const std::uint64_t file_bytes = model.bytes_.size();
    for (std::uint32_t i = 0; i < model.n_sections_; ++i) {
        const SectionRecord s = model.sections_[i];
        if (s.offset % kSectionAlignment != 0)
            return invalid("a section's offset modulo 64", 0, s.offset % kSectionAlignment);
        if (s.offset < directory_end) return invalid("offset of a section at least", directory_end, s.offset);
        if (s.offset > file_bytes || s.bytes > file_bytes - s.offset)
            return invalid("bytes left for a section", s.bytes, s.offset > file_bytes ? 0 : file_bytes - s.offset);
        for (std::uint32_t j = 0; j < i; ++j) {
            const SectionRecord& o = model.sections_[j];
            if (s.offset < o.offset + o.bytes && o.offset < s.offset + s.bytes)
                return invalid("section that overlaps no other: number", i, j);
        }
        const bool is_known = s.kind >= 1 && s.kind <= 5;
        if (!is_known && (s.flags & kCritical)) return {Code::unsupported, "section kind at most", 5, s.kind};
        if (!is_known) continue;
        if (seen[s.kind]) return invalid("section of each kind", 1, 2);
        seen[s.kind] = true;
        known[s.kind] = model.bytes_.subspan(static_cast<std::size_t>(s.offset), static_cast<std::size_t>(s.bytes));
        if (s.kind == static_cast<std::uint32_t>(SectionKind::weights)) model.weights_offset_ = s.offset;
        // These are small and decide everything, so their checksums are always compared; the weights' only on request.
        if (s.kind == 1 || s.kind == 2 || s.kind == 5)
            if (Status status = check_crc(model.bytes_, s); !status.ok()) return status;
    }
    const auto section = [&](SectionKind kind) { return known[static_cast<std::uint32_t>(kind)]; };
    const char* const needed[] = {"", "config section", "tensors section", "weights section"};
    for (std::uint32_t kind = 1; kind <= 3; ++kind)
        if (!seen[kind]) return {Code::section_missing, needed[kind], 1, 0};
    if (Status status = read_config(section(SectionKind::config), model.config_); !status.ok()) return status;
    if (Status status = read_tensors(section(SectionKind::tensors), section(SectionKind::weights).size(), model);
        !status.ok())
        return status;
    model.tokenizer_ = section(SectionKind::tokenizer);
    return read_info(section(SectionKind::info), model.info_);
}

Status ModelAccess::read(Bytes bytes, Model& model) noexcept {
    if (bytes.size() < sizeof(FileHeader))
        return {Code::truncated, "bytes of a header", sizeof(FileHeader), bytes.size()};
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kSectionAlignment != 0)
        return {Code::misaligned, "the file's address modulo 64", 0,
                reinterpret_cast<std::uintptr_t>(bytes.data()) % kSectionAlignment};
    const auto header = load<FileHeader>(bytes);
    const auto magic = load<std::uint64_t>(std::as_bytes(std::span(kMagic))), had = load<std::uint64_t>(bytes);
    if (had != magic) return {Code::bad_magic, "first eight bytes", magic, had};
    if (header.major != kFormatMajor)
        return {Code::version_unsupported, "the format's major version", kFormatMajor, header.major};
    const std::uint32_t header_crc = crc32c(bytes.first(sizeof(FileHeader) - 4));
    if (header_crc != header.header_crc) return {Code::checksum_mismatch, "header", header.header_crc, header_crc};
    if (header.file_bytes > bytes.size())
        return {Code::truncated, "bytes of the file", header.file_bytes, bytes.size()};
    if (header.n_sections > kMaxSections) return invalid("sections at most", kMaxSections, header.n_sections);
    const std::uint64_t directory_bytes = std::uint64_t{header.n_sections} * sizeof(SectionRecord);
    if (sizeof(FileHeader) + directory_bytes > header.file_bytes)
        return {Code::truncated, "bytes of the directory", sizeof(FileHeader) + directory_bytes, header.file_bytes};
    const Bytes directory = bytes.subspan(sizeof(FileHeader), static_cast<std::size_t>(directory_bytes));
    const std::uint32_t directory_crc = crc32c(directory);
    if (directory_crc != header.directory_crc)
        return {Code::checksum_mismatch, "directory", header.directory_crc, directory_crc};
    model.bytes_ = bytes.first(static_cast<std::size_t>(header.file_bytes));
    model.sections_ = reinterpret_cast<const SectionRecord*>(directory.data());
    model.n_sections_ = header.n_sections;
    model.fingerprint_ = crc32c(bytes.first(sizeof(FileHeader) + directory.size()));
    return read_sections(model);
}

const TensorRecord* ModelAccess::find(const Model& model, StackIndex stack, std::uint32_t layer, Role role) noexcept {
    const std::uint64_t wanted = order(stack, layer, role);
    const TensorRecord* end = model.tensors_ + model.n_tensors_;
    const TensorRecord* t =
        std::lower_bound(model.tensors_, end, wanted,
                         [](const TensorRecord& record, std::uint64_t key) { return order_of(record) < key; });
    return t != end && order_of(*t) == wanted && t->expert == 0 ? t : nullptr;
}

Status open_model(Bytes bytes, Model& model, const OpenOptions& options) noexcept {
    Model opened;
    if (Status status = ModelAccess::read(bytes, opened); !status.ok()) return status;
    if (options.verify_checksums)
        if (Status status = verify_checksums(opened); !status.ok()) return status;
    model = opened;
    return {};
}

std::string_view find_info(const Model& model, std::string_view key) noexcept {
    std::string_view found;
    for (const SectionRecord& s : ModelAccess::sections(model))
        if (s.kind == static_cast<std::uint32_t>(SectionKind::info))
            static_cast<void>(for_each_info(
                model.bytes().subspan(static_cast<std::size_t>(s.offset), static_cast<std::size_t>(s.bytes)),
                [&](std::string_view k, std::string_view v) { found = k == key ? v : found; }));
    return found;
}

std::span<const float> mel_filters(const Model& model) noexcept {
    if (!has(Part::vectors) || !model.config().encoder.sound.is_speech()) return {};
    const TensorRecord* t = ModelAccess::find(model, StackIndex::encoder, 0, Role::mel_filters);
    if (!t) return {};
    const std::byte* data = model.bytes().data() + ModelAccess::offset(model, *t);
    return {reinterpret_cast<const float*>(data), t->n_cols};
}

Status verify_checksums(const Model& model) noexcept {
    for (const SectionRecord& s : ModelAccess::sections(model))
        if (Status status = check_crc(model.bytes(), s); !status.ok()) return status;
    return {};
}

}  // namespace fovea
