#include "start.h"

extern uint32_t board_stack_limit[], board_stack_top[];
extern uint32_t board_data_load[], board_data_begin[], board_data_end[], board_bss_begin[], board_bss_end[];

#define HOOK __attribute__((weak))
static const uint32_t kPaint = 0x5afe57acu;

HOOK void board_write(const char* text, size_t n_bytes) {
    (void)text;
    (void)n_bytes;
}

HOOK uint64_t board_clock_ns(void) { return 0; }

HOOK void board_exit(int status) {
    (void)status;
    for (;;) __asm__ volatile("wfi");
}

HOOK void board_fault(uint32_t exception, const uint32_t* stacked_words) {
    (void)stacked_words;
    board_exit((int)exception);
}

size_t board_stack_used(void) {
    const uint32_t* mark = board_stack_limit;
    while (mark < board_stack_top && *mark == kPaint) ++mark;
    return (size_t)(board_stack_top - mark) * sizeof *mark;
}

/// Hands a fault its number and the words that the CPU pushed: r0 to r3, r12, lr, pc, xpsr.
__attribute__((naked)) static void fault(void) {
    __asm__ volatile(
        "mrs r0, ipsr\n"
        "mov r1, sp\n"
        "ldr r2, =board_fault\n"
        "bx r2");
}

/// The first code to run. Loops rather than memcpy and memset, which may be elsewhere and use what is not there yet.
__attribute__((noreturn)) static void reset(void) {
#ifdef __ARM_ARCH_6M__  // words at odd addresses: a fault on an emulator's larger CPU too
    *(volatile uint32_t*)0xe000ed14u |= 8;
#endif
#ifdef __ARM_FP
    volatile uint32_t* const cpacr = (volatile uint32_t*)0xe000ed88u;
    *cpacr |= 0xfu << 20;  // coprocessors 10 and 11: the FPU, and Helium
    __asm__ volatile("dsb\nisb" ::: "memory");
#endif
    for (volatile uint32_t* p = board_stack_limit; p < (uint32_t*)__builtin_frame_address(0); ++p) *p = kPaint;
    const uint32_t* from = board_data_load;
    for (volatile uint32_t* p = board_data_begin; p < board_data_end; ++p) *p = *from++;
    for (volatile uint32_t* p = board_bss_begin; p < board_bss_end; ++p) *p = 0;
    board_exit(main());
    for (;;) __asm__ volatile("wfi");
}

/// ARMv7-M Architecture Reference Manual, table B1-4: the stack's top, reset, and exceptions 2 to 15.
typedef union {
    void* stack;
    void (*handler)(void);
} Vector;
__attribute__((section(".vectors"), used)) const Vector board_vectors[16] = {
    {.stack = board_stack_top}, {.handler = reset}, {.handler = fault}, {.handler = fault},
    {.handler = fault},         {.handler = fault}, {.handler = fault}, {.handler = fault},
    {.handler = fault},         {.handler = fault}, {.handler = fault}, {.handler = fault},
    {.handler = fault},         {.handler = fault}, {.handler = fault}, {.handler = fault},
};
