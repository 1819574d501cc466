#include "cluster/worker.h"

#include <array>
#include <chrono>
#include <memory>
#include <new>
#include <vector>

#include "cluster/identity.h"
#include "cluster/wire.h"

namespace fovea::cluster {
namespace {

/// 64-byte aligned, grown where a request is larger than those before.
class Room {
public:
    [[nodiscard]] std::span<std::byte> of(std::size_t bytes) {
        if (bytes > size_) {
            bytes_.reset();
            bytes_.reset(new (std::align_val_t{64}) std::byte[bytes]);
            size_ = bytes;
        }
        return {bytes_.get(), bytes};
    }

private:
    struct Delete {
        void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{64}); }
    };
    std::unique_ptr<std::byte[], Delete> bytes_;
    std::size_t size_ = 0;
};

constexpr auto kAdds = std::uint8_t{1};  // MatrixPart::epilogue

/// Reads what a request's parts add to into their places among the results.
[[nodiscard]] bool receive_addends(Link& link, std::span<const MatrixPart> parts, const Request& request,
                                   std::span<float> results) {
    std::uint64_t at = 0, left = request.n_addends;
    for (const MatrixPart& part : parts) {
        const std::uint64_t n = n_results(part, request.n_rows);
        if (n > results.size() - at) return false;
        if (part.epilogue == kAdds) {
            if (n > left || !link.receive(std::as_writable_bytes(results.subspan(at, n)))) return false;
            left -= n;
        }
        at += n;
    }
    return left == 0;
}

}  // namespace

std::string serve_link(Link& link, const Model& model, Workspace& workspace, std::uint32_t n_threads) {
    Hello hello;
    constexpr std::chrono::seconds kPatience{10};
    if (!link.comes_within(kPatience)) return "expected a greeting within 10 seconds, got none";
    if (!link.receive_one(hello)) return "expected a greeting, got " + link.why();
    if (hello.magic != kHelloMagic) return "expected a greeting of fovea, got other bytes";
    const Welcome welcome{.identity = identity_of(model), .n_threads = n_threads};
    if (!link.send_one(welcome)) return link.why();
    if (hello.identity != welcome.identity) return "expected a program that runs the same file, got another file";

    Room operand_room, results_room;
    for (Request request; link.receive_one(request);) {
        if (request.magic != kRequestMagic || request.n_parts > kMostParts || request.operand_bytes > kMostBytes ||
            request.n_results > kMostBytes / sizeof(float) || request.n_addends > request.n_results)
            return "expected a request of fovea, got other numbers";
        std::array<MatrixPart, kMostParts> all;
        const std::span<MatrixPart> parts(all.data(), request.n_parts);
        const std::span<std::byte> operand = operand_room.of(request.operand_bytes);
        const std::span<std::byte> bytes = results_room.of(request.n_results * sizeof(float));
        const std::span<float> results(reinterpret_cast<float*>(bytes.data()), request.n_results);
        if (!link.receive(std::as_writable_bytes(parts)) || !link.receive(operand)) return link.why();
        if (!receive_addends(link, parts, request, results)) return "expected what parts add to, got less or more";
        const auto start = std::chrono::steady_clock::now();
        const Status status =
            parts.empty() ? Status{} : multiply_parts(workspace, parts, operand, request.n_rows, results);
        const auto took = std::chrono::steady_clock::now() - start;
        const Reply reply{.code = static_cast<std::uint32_t>(status.code),
                          .nanoseconds = static_cast<std::uint64_t>(std::chrono::nanoseconds(took).count()),
                          .n_results = status.ok() ? request.n_results : 0};
        const std::span<const std::byte> buffers[] = {std::as_bytes(std::span(&reply, 1)),
                                                      bytes.first(reply.n_results * sizeof(float))};
        if (!link.send(buffers)) return link.why();
        if (!status.ok()) return StatusLine(status).c_str();
    }
    return {};
}

}  // namespace fovea::cluster
