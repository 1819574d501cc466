# 32-bit RISC-V without FPU: ESP32-C3 and C6, RP2350's other cores.
set(FOVEA_CPU_FLAGS "-march=rv32imac -mabi=ilp32")
set(FOVEA_FLOAT_ABI soft)
set(FOVEA_MORE_BYTES 12288)
include(${CMAKE_CURRENT_LIST_DIR}/rv32.cmake)
