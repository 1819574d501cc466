# Bare-metal 32-bit RISC-V with GCC and picolibc: what rv32imac.cmake and its like have in common. They name the CPU's flags. The
# emulated board is qemu's "virt".
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR riscv32)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # nothing links without a linker script
set(CMAKE_C_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_CXX_COMPILER riscv64-unknown-elf-g++)
set(CMAKE_ASM_COMPILER riscv64-unknown-elf-gcc)
set(FOVEA_SIZE riscv64-unknown-elf-size)  # for the tests
set(FOVEA_BOARD virt)
set(FOVEA_BOARD_MHZ 10)
set(FOVEA_CPU_FLAGS "${FOVEA_CPU_FLAGS} --specs=picolibc.specs -ffunction-sections -fdata-sections")
foreach(language C CXX ASM)
  set(CMAKE_${language}_FLAGS_INIT ${FOVEA_CPU_FLAGS})
endforeach()
# Debian has no libstdc++ for it. The headers of another 32-bit target serve: the engine uses no code of that library.
file(GLOB headers /usr/include/newlib/c++/*)
if(headers)
  string(APPEND CMAKE_CXX_FLAGS_INIT " -isystem ${headers} -isystem ${headers}/arm-none-eabi")
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
# A nanosecond of its clock is one instruction.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-system-riscv32 -M virt -bios none -m 32M -display none -icount shift=0
                                  -semihosting-config enable=on,target=native -kernel)
