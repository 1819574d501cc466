// Start-up of the emulated RISC-V board, with its clock and faults; semihosting.c has the other hooks. A board's own SDK
// takes this file's place.
#include "start.h"

__asm__(".option arch, +zicsr");

extern uint32_t board_stack_limit[], board_stack_top[];
extern uint32_t board_data_load[], board_data_begin[], board_data_end[], board_bss_begin[], board_bss_end[];
static const uint32_t kPaint = 0x5afe57acu;

size_t board_stack_used(void) {
    const uint32_t* mark = board_stack_limit;
    while (mark < board_stack_top && *mark == kPaint) ++mark;
    return (size_t)(board_stack_top - mark) * sizeof *mark;
}

/// Instructions executed: the emulator's clock.
uint64_t board_clock_ns(void) {
    uint32_t high, low, again;
    do
        __asm__ volatile("csrr %0, minstreth\n csrr %1, minstret\n csrr %2, minstreth"
                         : "=r"(high), "=r"(low), "=r"(again));
    while (high != again);
    return (uint64_t)high << 32 | low;
}

__attribute__((aligned(4))) static void fault(void) {
    uint32_t cause, words[7] = {0};
    __asm__ volatile("csrr %0, mcause\n csrr %1, mepc" : "=r"(cause), "=r"(words[6]));
    board_fault(cause, words);
}

__attribute__((noreturn, used)) static void reset(void) {
    __asm__ volatile("csrw mtvec, %0" : : "r"(fault));
#ifdef __riscv_flen
    __asm__ volatile("csrs mstatus, %0" : : "r"(1u << 13));  // the FPU
#endif
    for (volatile uint32_t* p = board_stack_limit; p < (uint32_t*)__builtin_frame_address(0) - 16; ++p) *p = kPaint;
    const uint32_t* from = board_data_load;
    for (volatile uint32_t* p = board_data_begin; p < board_data_end; ++p) *p = *from++;
    for (volatile uint32_t* p = board_bss_begin; p < board_bss_end; ++p) *p = 0;
    board_exit(main());
    for (;;) __asm__ volatile("wfi");
}

/// The first code to run, where memory begins.
__attribute__((naked, section(".vectors"), used)) void board_vectors(void) {
    __asm__ volatile(
        "la sp, board_stack_top\n"
        "tail reset");
}
