# 64-bit ARM with Linux: Raspberry Pi 3 and later, phones, servers. The kernels for what a CPU has (NEON, dotprod, i8mm)
# are all built in and chosen when it runs.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(triple aarch64-linux-gnu)
set(qemu qemu-aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/linux.cmake)
