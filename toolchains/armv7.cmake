# 32-bit ARM with Linux, hard floats and a fused multiply-add (Cortex-A5, A7, A15, A17, and 64-bit cores' 32-bit mode).
set(CMAKE_SYSTEM_PROCESSOR armv7)
set(triple arm-linux-gnueabihf)
set(qemu qemu-arm)
set(CMAKE_CXX_FLAGS_INIT "-march=armv7-a -mfpu=neon-vfpv4 -mfloat-abi=hard -Wno-psabi")
set(CMAKE_C_FLAGS_INIT "${CMAKE_CXX_FLAGS_INIT}")
set(CMAKE_ASM_FLAGS_INIT "${CMAKE_CXX_FLAGS_INIT}")
include(${CMAKE_CURRENT_LIST_DIR}/linux.cmake)
