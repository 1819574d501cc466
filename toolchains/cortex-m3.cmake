# Cortex-M3, which has no FPU: STM32F1, SAM3X.
set(FOVEA_CPU_FLAGS -mcpu=cortex-m3)
set(FOVEA_FLOAT_ABI soft)
set(FOVEA_MACHINE mps2-an385)
set(FOVEA_BOARD mps2)
set(FOVEA_BOARD_MHZ 25)
include(${CMAKE_CURRENT_LIST_DIR}/cortex-m.cmake)
