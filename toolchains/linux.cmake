# What the Linux targets have in common, once CMAKE_SYSTEM_PROCESSOR, `triple` and `qemu` are set. Tests run under
# qemu's user mode; the environment variable QEMU_CPU says which CPU it shows (cortex-a72, cortex-a76, max,sve=off).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${triple}-gcc)
set(CMAKE_CXX_COMPILER ${triple}-g++)

# Programs are the host's, libraries the target's; headers alone (xsimd, JSON, doctest) may be the host's too.
set(CMAKE_FIND_ROOT_PATH /usr/${triple})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)

find_program(FOVEA_QEMU ${qemu} DOC "Runs the target's programs here")
if(FOVEA_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${FOVEA_QEMU} -L /usr/${triple})
endif()
