// The start-up's hooks for an emulator or a debugger: output, exit status and faults by semihosting; SysTick as clock.
#include "start.h"

static int call(int operation, const void* argument) {
#ifdef __riscv  // a break between these two, which do nothing, is a call; the three lie in one page
    register int a0 __asm__("a0") = operation;
    register const void* a1 __asm__("a1") = argument;
    __asm__ volatile(
        ".balign 16\n"
        ".option push\n"
        ".option norvc\n"
        "slli x0, x0, 0x1f\n"
        "ebreak\n"
        "srai x0, x0, 7\n"
        ".option pop"
        : "+r"(a0)
        : "r"(a1)
        : "memory");
    return a0;
#else
    register int r0 __asm__("r0") = operation;
    register const void* r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
#endif
}

void board_write(const char* text, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; ++i) call(3, text + i);  // SYS_WRITEC
}

void board_exit(int status) {
    const uint32_t reason[2] = {0x20026, (uint32_t)status};  // ADP_Stopped_ApplicationExit
    call(0x20, reason);                                      // SYS_EXIT_EXTENDED
    for (;;) __asm__ volatile("wfi");
}

void board_fault(uint32_t exception, const uint32_t* stacked_words) {
    static const char kFault[] = "fault ";
    char digits[] = "00 at 00000000\n";
    digits[0] = (char)('0' + exception / 10 % 10);
    digits[1] = (char)('0' + exception % 10);
    for (int i = 0; i < 8; ++i) digits[6 + i] = "0123456789abcdef"[stacked_words[6] >> (28 - 4 * i) & 15];
    board_write(kFault, sizeof kFault - 1);
    board_write(digits, sizeof digits - 1);
    board_exit(1);
}

#ifdef __arm__
// 24 bits of the CPU's clock, counting down: look at least every 0.6 s.
uint64_t board_clock_ns(void) {
    enum { kMhz = BOARD_MHZ, kMask = 0xffffff };
    volatile uint32_t* const systick = (volatile uint32_t*)0xe000e010u;  // control, reload, value
    static uint32_t last;
    static uint64_t ticks;
    if (!(systick[0] & 1)) {
        systick[1] = kMask;
        systick[2] = 0;
        systick[0] = 5;  // on, by the CPU's clock
        while (!systick[2]) {
        }
        last = systick[2];
    }
    const uint32_t now = systick[2];
    ticks += (last - now) & kMask;
    last = now;
    return ticks * 1000 / kMhz;
}
#endif
