#include "cluster/worker.h"

#include <array>
#include <chrono>
#include <new>

#include "cluster/wire.h"
#include "fovea/host/arena.h"

namespace fovea::cluster {
namespace {

/// Memory of a connection's requests.
struct Rooms {
    Arena operand, results;
};

/// The first n_bytes of an arena, which is grown if a request is larger than those before.
[[nodiscard]] std::span<std::byte> room(Arena& arena, std::uint64_t n_bytes) {
    if (n_bytes > arena.size()) {
        arena = Arena();
        arena = Arena(n_bytes, Pages::at_use);
        if (n_bytes > arena.size()) throw std::bad_alloc();
    }
    return arena.bytes().first(n_bytes);
}

/// For a greeting, and for each thing in a request that has begun.
[[nodiscard]] Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(30); }

/// Reads what a request's parts add to into their places among the results.
[[nodiscard]] bool receive_addends(Link& link, std::span<const MatrixPart> parts, const Request& request,
                                   std::span<float> results) {
    std::uint64_t at = 0, left = request.n_addends;
    for (const MatrixPart& part : parts) {
        const std::uint64_t n = n_results(part, request.n_rows);
        if (n > results.size() - at) return false;
        if (part.epilogue == kAdds) {
            if (n > left || !link.receive(std::as_writable_bytes(results.subspan(at, n)), soon())) return false;
            left -= n;
        }
        at += n;
    }
    return left == 0;
}

/// Reads a request's parts, computes them, and fills `reply`; the results are sent behind it. Returns "" or a line,
/// which ends the connection.
[[nodiscard]] std::string answer(Link& link, Workspace& workspace, const Request& request, Rooms& rooms, Reply& reply) {
    if (request.n_parts > kMostParts || request.operand_bytes > kMostBytes ||
        request.n_results > kMostBytes / sizeof(float) || request.n_addends > request.n_results)
        return "expected a request of fovea, got other numbers";
    std::array<MatrixPart, kMostParts> all;
    const std::span<MatrixPart> parts(all.data(), request.n_parts);
    if (!link.receive(std::as_writable_bytes(parts), soon())) return link.why();
    if (parts.empty()) return request.operand_bytes || request.n_results ? "expected parts, got none" : "";
    // Before memory is taken for what the request says.
    const Status fits = check_parts(workspace, parts, request.operand_bytes, request.n_rows, request.n_results);
    reply.code = static_cast<std::uint32_t>(fits.code);
    if (!fits.ok()) return StatusLine(fits).c_str();
    const std::span<std::byte> operand = room(rooms.operand, request.operand_bytes);
    const std::span<std::byte> bytes = room(rooms.results, request.n_results * sizeof(float));
    const std::span<float> results(reinterpret_cast<float*>(bytes.data()), request.n_results);
    if (!link.receive(operand, soon())) return link.why();
    if (!receive_addends(link, parts, request, results)) return "expected what parts add to, got less or more";
    const auto start = std::chrono::steady_clock::now();
    const Status status = multiply_parts(workspace, parts, operand, request.n_rows, results);
    const auto took = std::chrono::steady_clock::now() - start;
    reply.code = static_cast<std::uint32_t>(status.code);
    reply.nanoseconds = static_cast<std::uint64_t>(std::chrono::nanoseconds(took).count());
    if (!status.ok()) return StatusLine(status).c_str();
    reply.n_results = request.n_results;
    return "";
}

}  // namespace

Served serve_link(Link& link, const Model& model, Workspace& workspace, std::uint32_t n_threads) try {
    Hello hello;
    if (!link.receive_one(hello, soon())) return {false, "expected a greeting, got none: " + link.why()};
    if (hello.magic != kHelloMagic) return {false, "expected a greeting of fovea, got other bytes"};
    const Welcome welcome{.identity = identity_of(model), .n_threads = n_threads};
    if (!link.send_one(welcome, soon())) return {false, link.why()};
    if (hello.identity != welcome.identity)
        return {false, "expected a program that runs the same file, got another file"};

    Rooms rooms;
    for (;;) {  // a program may be idle as long as it likes, and take results when its own part is done
        Request request;
        const auto bytes = std::as_writable_bytes(std::span(&request, 1));
        if (!link.receive(bytes.first(1), kForEver)) return {true, link.closed() ? "" : link.why()};
        if (!link.receive(bytes.subspan(1), soon())) return {true, link.why()};
        if (request.magic != kRequestMagic) return {true, "expected a request of fovea, got other bytes"};
        Reply reply;
        const std::string why = answer(link, workspace, request, rooms, reply);
        if (why.empty() || reply.code) {
            const std::span<const std::byte> results = room(rooms.results, reply.n_results * sizeof(float));
            if (!link.send_one(reply, kForEver) || !link.send(results, kForEver)) return {true, link.why()};
        }
        if (!why.empty()) return {true, why};
    }
} catch (const std::bad_alloc&) {
    return {true, "expected a request that memory is there for, got a larger one"};
}

}  // namespace fovea::cluster
