# What the targets with musl have in common, once CMAKE_SYSTEM_PROCESSOR is set, and `qemu` where this machine can't run them. Zig's
# Clang builds them, which brings musl and libc++ (`pip install ziglang`). A program wants nothing of the system but its kernel.
set(CMAKE_SYSTEM_NAME Linux)
find_program(FOVEA_ZIG NAMES zig python-zig REQUIRED DOC "Zig, whose Clang has musl and libc++")
foreach(language C CXX ASM)
  set(CMAKE_${language}_COMPILER ${FOVEA_ZIG} cc -target ${CMAKE_SYSTEM_PROCESSOR}-linux-musl)
  set(CMAKE_${language}_FLAGS_INIT -fno-sanitize=undefined)  # which Zig says by itself where a file has -Og
  set(CMAKE_${language}_FLAGS_RELEASE_INIT -g0)  # Zig says -g by itself, which makes programs of 125 MB
  set(CMAKE_${language}_ARCHIVE_CREATE "${FOVEA_ZIG} ar qc <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_FINISH "${FOVEA_ZIG} ranlib <TARGET>")
endforeach()
list(TRANSFORM CMAKE_CXX_COMPILER REPLACE "^cc$" c++)

# Programs are the host's, and headers alone (xsimd, JSON, doctest); libraries are Zig's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)

if(qemu)
  find_program(FOVEA_QEMU ${qemu} DOC "Runs the target's programs here")
  if(FOVEA_QEMU)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${FOVEA_QEMU})
  endif()
endif()
