// Calls that other threads have for the HTTP thread. Nobody holds a lock for it: a thread that works behind others may be stopped
// anywhere for tens of milliseconds, in which this one must go on.
#pragma once
#include <array>
#include <atomic>
#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace fovea::serve {

class PostedCalls {
public:
    /// Throws host::Error where the system has no descriptors left.
    explicit PostedCalls(boost::asio::io_context& context);
    ~PostedCalls();
    PostedCalls(const PostedCalls&) = delete;
    PostedCalls& operator=(const PostedCalls&) = delete;

    /// Has it called by the thread that runs the context, in the order in which they come. From any thread.
    void post(std::function<void()> call);

private:
    struct Posted {
        std::function<void()> call;
        Posted* next;
    };
    void await();
    void run_all();
    [[nodiscard]] Posted* take_all();

    std::atomic<Posted*> last_{nullptr};
    boost::asio::posix::stream_descriptor heard_;
    int bell_ = -1;  // what is written to it is read from `heard_`, whose own descriptor it may be
    std::array<char, 8> rung_{};
};

}  // namespace fovea::serve
