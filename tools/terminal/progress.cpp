#include "tools/terminal/progress.h"

#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <memory>

#include "host/base/words.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

class ProgressLine {
public:
    explicit ProgressLine(std::string what) : what_(std::move(what)) {}
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    ~ProgressLine() {
        if (shown_ >= 0) std::fputc('\n', stderr);
    }

    void show(std::uint64_t done, std::uint64_t all) {
        constexpr auto kPatience = std::chrono::milliseconds(500);
        const int percent = all ? static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(all)) : 100;
        if (percent == shown_ || (shown_ < 0 && Clock::now() - started_ < kPatience)) return;
        shown_ = percent;
        std::fprintf(stderr, "\r%s: %3d %%", what_.c_str(), percent);
        std::fflush(stderr);
    }

private:
    std::string what_;
    Clock::time_point started_ = Clock::now();
    int shown_ = -1;  // no line yet
};

}  // namespace

Progress progress_line(const std::string& what) {
    if (!isatty(STDERR_FILENO)) return {};
    return [line = std::make_shared<ProgressLine>(one_line(what))](std::uint64_t done, std::uint64_t all) {
        line->show(done, all);
    };
}

}  // namespace fovea
