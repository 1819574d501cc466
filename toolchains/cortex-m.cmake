# Bare-metal Cortex-M with GCC and newlib: what cortex-m7.cmake and its like have in common. They name the CPU's flags,
# the emulator's machine, for the example a linker script and the clock, and FOVEA_FLOAT_ABI=soft where there is no FPU.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # nothing links without a linker script
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
set(FOVEA_SIZE arm-none-eabi-size)  # for the tests
if(NOT FOVEA_FLOAT_ABI)
  set(FOVEA_FLOAT_ABI hard)
endif()
string(JOIN " " FOVEA_CPU_FLAGS ${FOVEA_CPU_FLAGS} -mthumb -mfloat-abi=${FOVEA_FLOAT_ABI} -mfp16-format=ieee -ffunction-sections -fdata-sections)
foreach(language C CXX ASM)
  set(CMAKE_${language}_FLAGS_INIT ${FOVEA_CPU_FLAGS})
endforeach()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
# A nanosecond of its clock is one instruction.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-system-arm -M ${FOVEA_MACHINE} -display none -icount shift=0
                                  -semihosting-config enable=on,target=native -kernel)
