# 64-bit RISC-V with Linux (rv64gc: VisionFive 2, LicheePi 4A and others). The scalar kernels, with its fused
# multiply-add.
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(triple riscv64-linux-gnu)
set(qemu qemu-riscv64)
include(${CMAKE_CURRENT_LIST_DIR}/linux.cmake)
