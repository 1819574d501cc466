set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(qemu qemu-riscv64)
include(${CMAKE_CURRENT_LIST_DIR}/musl.cmake)
