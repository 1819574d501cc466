// Reads an opened model's directory and tensor list again: the validator has been over both.
#include "host/model/listing.h"

#include <cstring>
#include <span>

#include "engine/format/format.h"

namespace fovea {
namespace {

template<class Record>
std::vector<Record> records(std::span<const std::byte> bytes) {
    std::vector<Record> all(bytes.size() / sizeof(Record));
    if (!all.empty()) std::memcpy(all.data(), bytes.data(), all.size() * sizeof(Record));
    return all;
}

std::vector<SectionRecord> directory(const Model& model) {
    if (model.bytes().empty()) return {};  // a model that is attention alone
    const std::uint32_t n = records<FileHeader>(model.bytes().first(sizeof(FileHeader)))[0].n_sections;
    return records<SectionRecord>(model.bytes().subspan(sizeof(FileHeader), n * sizeof(SectionRecord)));
}

}  // namespace

std::vector<SectionInfo> sections(const Model& model) {
    std::vector<SectionInfo> all;
    for (const SectionRecord& s : directory(model)) all.push_back({section_name(s.kind), s.offset, s.bytes, s.crc});
    return all;
}

std::vector<TensorInfo> tensors(const Model& model) {
    static constexpr const char* kLayouts[] = {"vector", "rows", "panels"};
    std::uint64_t weights_offset = 0;
    std::span<const std::byte> list;
    for (const SectionRecord& s : directory(model)) {
        if (s.kind == static_cast<std::uint32_t>(SectionKind::weights)) weights_offset = s.offset;
        if (s.kind == static_cast<std::uint32_t>(SectionKind::tensors)) list = model.bytes().subspan(s.offset, s.bytes);
    }
    std::vector<TensorInfo> all;
    for (const TensorRecord& t : records<TensorRecord>(list))
        all.push_back({role_name(t.role), kLayouts[t.layout], static_cast<Type>(t.type), t.stack == 0, t.layer,
                       t.n_rows, t.n_cols, weights_offset + t.offset, t.bytes});
    return all;
}

}  // namespace fovea
