// The demo on the second core, whose stack may be as large as the engine wants; the first one's has 4 KiB.
#include <stdio.h>

#include <pico/multicore.h>
#include <pico/stdlib.h>
#include "start.h"

int run_demo(void);

enum { kWords = 3 * 1024, kPaint = 0x5afe57ac };
static uint32_t stack[kWords];

void board_write(const char* text, size_t n_bytes) { printf("%.*s", (int)n_bytes, text); }

uint64_t board_clock_ns(void) { return time_us_64() * 1000; }

size_t board_stack_used(void) {
    size_t at = 0;
    while (at < kWords && stack[at] == kPaint) ++at;
    return (kWords - at) * sizeof *stack;
}

static void second_core(void) { multicore_fifo_push_blocking((uint32_t)run_demo()); }

int main(void) {
    stdio_init_all();
    for (size_t i = 0; i < kWords; ++i) stack[i] = kPaint;
    multicore_launch_core1_with_stack(second_core, stack, sizeof stack);
    return (int)multicore_fifo_pop_blocking();
}
