#include <zephyr/kernel.h>

#include "start.h"

int run_demo(void);

void board_write(const char* text, size_t n_bytes) { printk("%.*s", (int)n_bytes, text); }

uint64_t board_clock_ns(void) { return k_ticks_to_ns_floor64((uint64_t)k_uptime_ticks()); }

size_t board_stack_used(void) {
    size_t unused = 0;
    if (k_thread_stack_space_get(k_current_get(), &unused)) return 0;
    return k_current_get()->stack_info.size - unused;
}

int main(void) { return run_demo(); }
