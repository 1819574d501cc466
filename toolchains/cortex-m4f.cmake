# Cortex-M4 with its single-precision FPU: STM32F4, nRF52.
set(FOVEA_CPU_FLAGS -mcpu=cortex-m4 -mfpu=fpv4-sp-d16)
set(FOVEA_MACHINE mps2-an386)
set(FOVEA_BOARD mps2)
set(FOVEA_BOARD_MHZ 25)
include(${CMAKE_CURRENT_LIST_DIR}/cortex-m.cmake)
