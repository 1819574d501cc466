# WebAssembly of 32 bits with WASI: the library, as for a microcontroller, and programs that need an output and a clock.
# There is no fused multiply-add, so the kernels make their own. Node.js runs the tests.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
foreach(language C CXX ASM)
  set(CMAKE_${language}_COMPILER clang)
  set(CMAKE_${language}_COMPILER_TARGET wasm32-wasi)
endforeach()
set(CMAKE_CXX_COMPILER clang++)
set(CMAKE_AR llvm-ar)  # the system's own do not know such objects
set(CMAKE_RANLIB llvm-ranlib)
set(CMAKE_NM llvm-nm)
set(FOVEA_SIZE llvm-size)
set(FOVEA_BOARD wasi)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_CROSSCOMPILING_EMULATOR node --no-warnings ${CMAKE_CURRENT_LIST_DIR}/wasi.mjs)
