# Cortex-M7 with a double-precision FPU: STM32H7, i.MX RT.
set(FOVEA_CPU_FLAGS -mcpu=cortex-m7 -mfpu=fpv5-d16)
set(FOVEA_MACHINE mps2-an500)
set(FOVEA_BOARD mps2)
set(FOVEA_BOARD_MHZ 25)
include(${CMAKE_CURRENT_LIST_DIR}/cortex-m.cmake)
