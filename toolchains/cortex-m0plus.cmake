# Cortex-M0+ without FPU: RP2040, STM32L0. Its instructions are a part of the M3's, so that the M3's board counts them.
set(FOVEA_CPU_FLAGS -mcpu=cortex-m0plus)
set(FOVEA_FLOAT_ABI soft)
set(FOVEA_MORE_BYTES 8192)
set(FOVEA_MACHINE mps2-an385)
set(FOVEA_BOARD mps2)
set(FOVEA_BOARD_MHZ 25)
include(${CMAKE_CURRENT_LIST_DIR}/cortex-m.cmake)
