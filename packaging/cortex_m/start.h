// Start-up of a Cortex-M: vectors, memory, the FPU, main. No heap, no input or output; what a board has comes in by
// hooks.
//
// Link start.c, and not the library alone, where a board has no start-up of its own. The linker script puts .vectors
// where the CPU looks for it and names, at multiples of 4 bytes:
//     board_stack_limit, board_stack_top     the stack, of which board_stack_used() tells what was used
//     board_data_load, board_data_begin, board_data_end      initialised data: where it is stored, where it belongs
//     board_bss_begin, board_bss_end                         what starts as zeros
// C++ programs with static constructors run those themselves; the library has none.
#ifndef FOVEA_CORTEX_M_START_H
#define FOVEA_CORTEX_M_START_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int main(void);

/// Hooks: weak, so that a definition of the same name replaces one. What they do of themselves stands behind.
void board_write(const char* text, size_t n_bytes);                   ///< nothing
uint64_t board_clock_ns(void);                                        ///< 0
void board_exit(int status);                                          ///< sleeps for ever; called when main returns
void board_fault(uint32_t exception, const uint32_t* stacked_words);  ///< board_exit(exception); [6] is the address

/// The most bytes that the stack has had so far: start-up painted all of it, and this looks for the first mark gone.
size_t board_stack_used(void);

#ifdef __cplusplus
}
#endif
#endif
