# 32-bit RISC-V with single-precision FPU: ESP32-P4.
set(FOVEA_CPU_FLAGS "-march=rv32imafc -mabi=ilp32f")
set(FOVEA_MORE_BYTES 12288)
include(${CMAKE_CURRENT_LIST_DIR}/rv32.cmake)
