// The start-up's hooks for WebAssembly, by WASI. Whatever runs the program starts main and has zeroed the memory.
#include <wasi/api.h>

#include "start.h"

void board_write(const char* text, size_t n_bytes) {
    const __wasi_ciovec_t bytes = {(const uint8_t*)text, n_bytes};
    __wasi_size_t n_written;
    (void)!__wasi_fd_write(1, &bytes, 1, &n_written);
}

uint64_t board_clock_ns(void) {
    __wasi_timestamp_t now = 0;
    (void)!__wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 1, &now);
    return now;
}

// The linker puts the stack for what has its address taken between data and heap. Other locals have no address, and are
// the machine's business.
size_t board_stack_used(void) {
    extern const unsigned char __data_end[], __heap_base[];
    const unsigned char* unused = __data_end;
    while (unused < __heap_base && !*unused) ++unused;
    return (size_t)(__heap_base - unused);
}
