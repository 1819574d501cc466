// What the demo asks of a board: output and a clock.
#include <Arduino.h>

extern "C" {
void board_write(const char* text, size_t n_bytes) { Serial.write(text, n_bytes); }

uint64_t board_clock_ns(void) {
    static uint32_t last;
    static uint64_t microseconds;
    const uint32_t now = micros();
    microseconds += static_cast<uint32_t>(now - last);
    last = now;
    return microseconds * 1000;
}

__attribute__((weak)) size_t board_stack_used(void) { return 0; }  // a core may know
}
