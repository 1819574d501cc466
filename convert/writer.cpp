#include "convert/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <span>
#include <string>

#include "convert/elements.h"
#include "convert/file_header.h"
#include "convert/quantize.h"
#include "convert/refusal.h"
#include "convert/unfinished.h"
#include "fovea/checksum.h"

namespace fovea {
namespace {

using Sink = std::function<void(std::span<const std::byte>)>;

constexpr std::uint64_t kChunkElements = 1u << 18;  // of a table or vector that are read together: 1 MB

/// Makes the bytes of one tensor after another and hands them on in pieces, with their checksum.
class WeightStream {
public:
    WeightStream(const ModelSource& source, const WriteOptions& options, std::uint64_t total, const Sink& sink)
        : source_(source), options_(options), total_(total), sink_(sink) {}

    void write(const TensorSpec& spec, const TensorRecord& record) {
        piece_.assign(record.offset - done_, std::byte{0});
        hand_on();
        const auto type = static_cast<Type>(record.type);
        if (is_quantized(type))
            write_quantized_panels(spec, type, record.panel_stride);
        else if (spec.layout == Layout::panels)
            write_panels(spec, type, record.panel_stride);
        else
            write_rows(spec, type, record.bytes);
    }

    [[nodiscard]] std::uint32_t crc() const { return crc_; }

private:
    void write_panels(const TensorSpec& spec, Type type, std::uint64_t stride) {
        const std::uint64_t n_cols = spec.n_cols;
        for (std::uint32_t row = 0; row < spec.n_rows; row += kLanes) {
            const std::uint32_t n_rows = std::min(kLanes, spec.n_rows - row);
            rows_.assign(kLanes * n_cols, 0.0f);
            source_.read_rows(spec, row, n_rows, rows_.data());
            panel_.resize(kLanes * n_cols);
            for (std::uint64_t col = 0; col < n_cols; ++col)
                for (std::uint32_t lane = 0; lane < kLanes; ++lane)
                    panel_[col * kLanes + lane] = rows_[lane * n_cols + col];
            piece_.assign(stride, std::byte{0});
            store(spec, type, panel_, piece_.data());
            hand_on();
        }
    }

    void write_quantized_panels(const TensorSpec& spec, Type type, std::uint64_t stride) {
        QuantLoss all;
        for (std::uint32_t row = 0; row < spec.n_rows; row += kLanes) {
            const std::uint32_t n_rows = std::min(kLanes, spec.n_rows - row), n_groups = spec.n_cols / kGroup;
            piece_.assign(stride, std::byte{0});
            if (source_.read_groups) {
                groups_.assign(std::size_t{kLanes} * n_groups, {});
                if (source_.read_groups(spec, type, row, n_rows, groups_.data())) {
                    put_panel(type, groups_.data(), n_groups, piece_.data());
                    hand_on();
                    continue;
                }
            }
            rows_.assign(std::uint64_t{kLanes} * spec.n_cols, 0.0f);
            source_.read_rows(spec, row, n_rows, rows_.data());
            const QuantLoss loss = quantize_panel(type, rows_.data(), spec.n_cols, piece_.data());
            if (loss.overflow)
                throw Refusal("weights of tensor " + place_of(spec) + " are beyond " + type_name(type) +
                              "'s range; use --type bf16 or f32");
            all.error += loss.error;
            all.total += loss.total;
            hand_on();
        }
        if (options_.quantized) options_.quantized(spec, type, all.total > 0 ? std::sqrt(all.error / all.total) : 0);
    }

    static std::string place_of(const TensorSpec& spec) {
        return role_name(static_cast<std::uint16_t>(spec.role)) + std::string(" in layer ") +
               std::to_string(spec.layer);
    }

    void write_rows(const TensorSpec& spec, Type type, std::uint64_t bytes) {
        const std::uint64_t element = type == Type::f32 ? 4 : 2, end = done_ + bytes;
        const auto step = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, kChunkElements / spec.n_cols));
        for (std::uint32_t row = 0; row < spec.n_rows; row += std::min(step, spec.n_rows - row)) {
            const std::uint32_t n_rows = std::min(step, spec.n_rows - row);
            rows_.resize(std::uint64_t{n_rows} * spec.n_cols);
            source_.read_rows(spec, row, n_rows, rows_.data());
            piece_.resize(rows_.size() * element);
            store(spec, type, rows_, piece_.data());
            hand_on();
        }
        piece_.assign(end - done_, std::byte{0});  // a vector's padding
        hand_on();
    }

    void store(const TensorSpec& spec, Type type, const std::vector<float>& from, std::byte* to) const {
        if (type == Type::f32) {
            std::memcpy(to, from.data(), from.size() * 4);
            return;
        }
        for (const float value : from) {
            const std::uint16_t half = type == Type::f16 ? to_f16(value) : to_bf16(value);
            if (std::isfinite(value) && (half & 0x7fff) == (type == Type::f16 ? 0x7c00 : 0x7f80))
                throw Refusal("a weight of tensor " + place_of(spec) + " is " + std::to_string(value) + ", beyond " +
                              type_name(type) + "'s range; use --type " + (type == Type::f16 ? "bf16 or f32" : "f32"));
            std::memcpy(to, &half, sizeof half);
            to += sizeof half;
        }
    }

    void hand_on() {
        if (piece_.empty()) return;
        crc_ = crc32c(piece_, crc_);
        done_ += piece_.size();
        sink_(piece_);
        if (options_.progress) options_.progress(done_, total_);
    }

    const ModelSource& source_;
    const WriteOptions& options_;
    const std::uint64_t total_;
    const Sink& sink_;
    std::vector<float> rows_, panel_;
    std::vector<QuantizedGroup> groups_;
    std::vector<std::byte> piece_;
    std::uint64_t done_ = 0;
    std::uint32_t crc_ = 0;
};

/// Gives the weights to `sink`, in order, and completes `head`.
void stream_weights(const ModelSource& source, const WriteOptions& options, FileHead& head, const Sink& sink) {
    WeightStream stream(source, options, head.weights_bytes, sink);
    for (std::size_t i = 0; i < head.specs.size(); ++i) stream.write(head.specs[i], head.records[i]);
    seal(head, stream.crc());
}

[[noreturn]] void refuse_io(const std::filesystem::path& path, const char* step) {
    throw Refusal(path.string() + ": cannot be " + step + ": " + system_error(errno));
}

/// A file beside `target` that becomes it on commit and otherwise vanishes.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::filesystem::path& target) : target_(target), file_(target.string()) {
        if (file_.fd() < 0) refuse_io(file_.path(), "made");
    }

    void write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const ssize_t n = ::pwrite(file_.fd(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) refuse_io(file_.path(), "written");
            bytes = bytes.subspan(static_cast<std::size_t>(n));
            offset += static_cast<std::uint64_t>(n);
        }
    }

    void commit() {
        if (::fsync(file_.fd()) != 0) refuse_io(file_.path(), "written");
        if (!file_.finish()) refuse_io(target_, "replaced");
        sync_directory();
    }

private:
    /// So that the new name, too, outlives a loss of power. A file system that can't is no reason to fail.
    void sync_directory() const {
        const std::filesystem::path parent = target_.has_parent_path() ? target_.parent_path() : ".";
        const int fd = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) return;
        static_cast<void>(::fsync(fd));
        ::close(fd);
    }

    std::filesystem::path target_;
    Unfinished file_;
};

/// What is appended reaches the file 2 MB at a time: a file system that keeps what it is given in large pages (Linux's
/// ext4, XFS and others) then maps the model by such pages, not by small ones that each take a fault's time to find.
class LargeWrites {
public:
    explicit LargeWrites(TemporaryFile& file) : file_(file) { waiting_.reserve(kLargePage); }

    void append(std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const std::size_t n = std::min(bytes.size(), kLargePage - waiting_.size());
            waiting_.insert(waiting_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
            bytes = bytes.subspan(n);
            if (waiting_.size() == kLargePage) flush();
        }
    }

    void flush() {
        file_.write_at(offset_, waiting_);
        offset_ += waiting_.size();
        waiting_.clear();
    }

private:
    static constexpr std::size_t kLargePage = 2u << 20;  // bytes, of x86-64 and of 64-bit ARM with pages of 4 KB
    TemporaryFile& file_;
    std::vector<std::byte> waiting_;
    std::uint64_t offset_ = 0;
};

/// Refuses before hours are spent on a file that its place has no room for. Where the system can't tell, writing will.
void need_room(const std::filesystem::path& target, std::uint64_t bytes) {
    const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
    std::error_code error;
    const std::filesystem::space_info space = std::filesystem::space(folder, error);
    if (!error && bytes > space.available)
        throw Refusal(target.string() + ": expected room for " + with_separators(bytes) + " bytes, got " +
                      with_separators(space.available) + " in " + folder.string());
}

}  // namespace

std::uint64_t file_bytes(const ModelSource& source, const WriteOptions& options) {
    const FileHead head = make_head(source, options);
    return head.bytes.size() + head.weights_bytes;
}

void write_file(const ModelSource& source, const std::filesystem::path& path, const WriteOptions& options) {
    const std::filesystem::path target = behind_links(path.string());
    std::error_code error;
    if (std::filesystem::exists(target, error) && !std::filesystem::is_regular_file(target, error))
        throw Refusal(path.string() + ": expected a regular file to write, got a folder or a device");
    FileHead head = make_head(source, options);
    need_room(target, head.bytes.size() + head.weights_bytes);
    TemporaryFile file(target);
    LargeWrites writes(file);
    writes.append(head.bytes);
    stream_weights(source, options, head, [&](std::span<const std::byte> piece) { writes.append(piece); });
    writes.flush();
    file.write_at(0, head.bytes);  // again, with the checksums that are known now
    file.commit();
}

AlignedBytes write_bytes(const ModelSource& source, const WriteOptions& options) {
    FileHead head = make_head(source, options);
    AlignedBytes bytes(head.bytes.size() + head.weights_bytes);
    std::uint64_t offset = head.bytes.size();
    stream_weights(source, options, head, [&](std::span<const std::byte> piece) {
        std::copy(piece.begin(), piece.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
        offset += piece.size();
    });
    std::copy(head.bytes.begin(), head.bytes.end(), bytes.begin());
    return bytes;
}

}  // namespace fovea
