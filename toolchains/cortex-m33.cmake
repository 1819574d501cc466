# Cortex-M33 with single-precision FPU and DSP: RP2350, nRF53, STM32U5.
set(FOVEA_CPU_FLAGS -mcpu=cortex-m33 -mfpu=fpv5-sp-d16)
set(FOVEA_MACHINE mps2-an505)
set(FOVEA_BOARD mps2_secure)
set(FOVEA_BOARD_MHZ 20)
include(${CMAKE_CURRENT_LIST_DIR}/cortex-m.cmake)
