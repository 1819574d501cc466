#include "convert/writer/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <span>
#include <string>

#include "convert/writer/crc_join.h"
#include "convert/writer/file_header.h"
#include "convert/writer/weight_pieces.h"
#include "engine/format/format.h"
#include "fovea/checksum.h"
#include "host/base/file_error.h"
#include "host/base/ordered_work.h"
#include "host/base/unfinished.h"
#include "host/base/words.h"

namespace fovea {
namespace {

using Sink = std::function<void(std::span<const std::byte>)>;

/// Gives the weights to `sink`, in order, and completes `head`.
void stream_weights(const ModelSource& source, const WriteOptions& options, FileHead& head, const Sink& sink) {
    const WeightPieces pieces(source, head, options.calibration);
    const std::size_t n_threads = std::max(options.n_threads, 1u);
    std::vector<PieceScratch> scratch(n_threads);
    std::vector<MadePiece> made(n_slots(options.n_threads));
    std::uint64_t done_bytes = 0;
    std::uint32_t crc = 0;
    QuantLoss loss;  // of the tensor so far
    OrderedWork work;
    work.n_pieces = pieces.count();
    work.make = [&](std::uint64_t piece, std::size_t slot, std::size_t member) {
        pieces.make(piece, scratch[member], made[slot]);
    };
    work.take = [&](std::uint64_t, std::size_t slot) {
        const MadePiece& piece = made[slot];
        sink(piece.bytes);
        crc = joined_crc32c(crc, piece.crc, piece.bytes.size());
        done_bytes += piece.bytes.size();
        if (options.progress) options.progress(done_bytes, head.weights_bytes);
        loss.error += piece.loss.error;
        loss.total += piece.loss.total;
        if (!piece.last) return;
        const auto type = static_cast<Type>(head.records[piece.tensor].type);
        if (options.quantized && is_quantized(type))
            options.quantized(head.specs[piece.tensor], type, loss.total > 0 ? std::sqrt(loss.error / loss.total) : 0);
        loss = {};
    };
    work_in_order(work, options.n_threads);
    seal(head, crc);
}

[[noreturn]] void refuse_io(const std::filesystem::path& path, const char* step) {
    const int error = errno;
    throw host::FileError(path.string(), std::string("cannot be ") + step + ": " + system_error(error), error);
}

/// Whether that is a beginning of a Fovea file, whose header has no checksum yet.
bool is_unsealed(const std::filesystem::path& path) {
    FileHeader header;
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    if (file.gcount() == 0) return true;
    const auto bytes = std::as_bytes(std::span(&header, 1));
    return file.gcount() == sizeof header && std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 &&
           header.header_crc != crc32c(bytes.first(offsetof(FileHeader, header_crc)));
}

/// A file beside `target`: commit makes it the target, else it is removed.
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

/// Appended bytes reach the file 2 MB at a time. A file system that keeps them in large pages (Linux's ext4, XFS and
/// others) then maps the model by such pages, and not by small ones that each cost a page fault.
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

/// Refuses a file that its place has no room for, before hours are spent on it. If the system can't tell, writing will.
void need_room(const std::filesystem::path& target, std::uint64_t bytes) {
    const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
    std::error_code error;
    const std::filesystem::space_info space = std::filesystem::space(folder, error);
    if (!error && bytes > space.available)
        throw host::Error(target.string() + ": expected room for " + with_separators(bytes) + " bytes, got " +
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
        throw host::Error(path.string() + ": expected a regular file to write, got a folder or a device");
    FileHead head = make_head(source, options);
    need_room(target, head.bytes.size() + head.weights_bytes);
    remove_left_parts(target.has_parent_path() ? target.parent_path() : ".", target.filename().string(), is_unsealed);
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
