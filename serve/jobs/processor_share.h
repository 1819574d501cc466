// What a thread asks of the system where threads share processors. Systems that know no such wish are asked nothing.
#pragma once
#include <chrono>

namespace fovea::serve {

/// This thread works behind others: where all want to run it has a tenth of their time.
void work_behind_others() noexcept;

/// This thread, and those that it starts from then on, want to run for so long at a time, 0.1 to 100 ms. A thread that wakes runs at
/// once in place of one of longer slices, and else waits for a tick of the clock, up to 4 ms. All have the same share of time.
void ask_for_slices(std::chrono::microseconds time) noexcept;

}  // namespace fovea::serve
