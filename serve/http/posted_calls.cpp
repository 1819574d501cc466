#include "serve/http/posted_calls.h"

#include <fcntl.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/eventfd.h>
#endif

#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea::serve {
namespace {

/// Two ends of a bell: what is heard, and what is rung.
std::pair<int, int> make_bell() {
#if defined(__linux__)
    const int both = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (both >= 0) return {both, both};
#else
    int ends[2];
    if (::pipe(ends) == 0) {
        for (const int end : ends) (void)::fcntl(end, F_SETFD, FD_CLOEXEC);
        return {ends[0], ends[1]};
    }
#endif
    throw host::Error("server: expected descriptors for its threads, got none: " + system_error(errno));
}

}  // namespace

PostedCalls::PostedCalls(boost::asio::io_context& context) : heard_(context) {
    const auto [heard, bell] = make_bell();
    heard_.assign(heard);
    bell_ = bell;
    await();
}

PostedCalls::~PostedCalls() {
    if (bell_ != heard_.native_handle()) ::close(bell_);
    while (Posted* one = take_all())  // what ends here may post another
        while (one) delete std::exchange(one, one->next);
}

void PostedCalls::post(std::function<void()> call) {
    Posted* before = last_.load(std::memory_order_relaxed);
    auto* const made = new Posted{std::move(call), before};
    while (!last_.compare_exchange_weak(before, made, std::memory_order_release, std::memory_order_relaxed))
        made->next = before;
    constexpr std::uint64_t kOnce = 1;
    if (!before) (void)!::write(bell_, &kOnce, sizeof kOnce);  // else whoever came first rings
}

void PostedCalls::await() {
    heard_.async_read_some(boost::asio::buffer(rung_), [this](boost::system::error_code error, std::size_t) {
        if (error) return;
        run_all();
        await();
    });
}

PostedCalls::Posted* PostedCalls::take_all() { return last_.exchange(nullptr, std::memory_order_acquire); }

void PostedCalls::run_all() {
    Posted* first = nullptr;  // they were kept the last first
    for (Posted* one = take_all(); one;) {
        Posted* const before = one->next;
        one->next = std::exchange(first, one);
        one = before;
    }
    while (first) {
        const std::unique_ptr<Posted> one(std::exchange(first, first->next));
        one->call();
    }
}

}  // namespace fovea::serve
