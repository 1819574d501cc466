set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(qemu qemu-aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/musl.cmake)
