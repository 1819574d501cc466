# fovea_isa(NAME FLAGS ... [FLOATS NAME] [QUANTS NAME] [TILES])
#
# An instruction set, compiled with FLAGS of its own: its table joins fovea_tables, where a later one is a better one. The table has
# kernels for floats and for quants of its own, or of an earlier set that is named; TILES: products by tiles of its own.
# FOVEA_ISAS says which sets are built, with the kernels that they take from others.
#
# Inline functions that are compiled under different -m flags share one symbol name, and the linker keeps one of them:
# a CPU without AVX-512 would then run AVX-512 code. So every file of engine/kernels/isa/ is compiled apart (no unity build, no LTO),
# with xsimd's namespace renamed after the instruction set, and optimised in debug builds too: what is inlined has no symbol. Only
# a -O of the host's own flags keeps it from that. The test "isa_symbols" checks what each object exports.
function(fovea_isa name)
  cmake_parse_arguments(PARSE_ARGV 1 isa "TILES" "FLOATS;QUANTS" "FLAGS")
  if(FOVEA_ZIG)  # which takes what follows -march= for a CPU
    list(TRANSFORM isa_FLAGS REPLACE "-march=armv8[.0-9]*-a" "-mcpu=generic")
  endif()
  set(fovea_${name}_flags ${isa_FLAGS} PARENT_SCOPE)
  set(fovea_${name}_flags ${isa_FLAGS})
  if(FOVEA_ISAS AND NOT name IN_LIST FOVEA_ISAS)
    return()
  endif()
  foreach(part floats quants)
    string(TOUPPER ${part} from)
    set(from ${isa_${from}})
    if(NOT from)
      set(from ${name})
    endif()
    fovea_isa_part(${from} ${part})
  endforeach()
  if(isa_TILES)
    fovea_isa_part(${name} tiles)
  endif()
  set(fovea_tables "FOVEA_TABLE(${name}) ${fovea_tables}" PARENT_SCOPE)
  set_property(GLOBAL APPEND PROPERTY FOVEA_BUILT_ISAS ${name})
endfunction()

# fovea_isa_part(NAME PART): the files PART*.cpp of engine/kernels/isa/ with the set's flags, if the library has them not yet.
function(fovea_isa_part name part)
  set(object fovea_${name}_${part})
  if(TARGET ${object})
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/engine/kernels/isa/${part}*.cpp)
  add_library(${object} OBJECT ${sources})
  target_compile_features(${object} PRIVATE cxx_std_20)
  set_target_properties(${object} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF
                                             INTERPROCEDURAL_OPTIMIZATION OFF CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${object} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  if(part STREQUAL "quants")  # ten files, so that each takes less than ten seconds
    target_precompile_headers(${object} PRIVATE ${PROJECT_SOURCE_DIR}/engine/kernels/isa/quants.h)
  endif()
  target_compile_definitions(${object} PRIVATE ${fovea_definitions} FOVEA_ISA=${name} xsimd=xsimd_${name})
  target_compile_options(${object} PRIVATE ${fovea_engine_flags} -fno-lto ${fovea_${name}_flags})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Before 13, GCC warns of its own headers: the "undefined" operand of unmasked AVX-512 intrinsics.
    target_compile_options(${object} PRIVATE -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  if(WIN32 AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${object} PRIVATE -Wa,-muse-unaligned-vector-move)  # its stack is aligned to 16 bytes (GCC's bug 54412)
  endif()
  if(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$" OR NOT CMAKE_CXX_FLAGS MATCHES "(^| )-O")
    # Loops are unrolled by hand: on a Zen 3, AVX2's kernels at -O3 took a third longer to compile, were a third larger and no
    # faster. AVX-512's take the same flag, untimed; ARM keeps -O3.
    set(optimised -O3)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
      set(optimised -O2)
    endif()
    target_compile_options(${object} PRIVATE ${optimised})
  endif()
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    # A sanitizer's checks make minutes of these unrolled loops' compilation. Reading or writing too far is what the
    # guard pages around every buffer of the kernel tests find, and scalar.h, the same contract, is instrumented.
    target_compile_options(${object} PRIVATE -fno-sanitize=all)
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")  # other lanes are the compilers' own vectors
    fovea_find(xsimd)
    target_link_libraries(${object} PRIVATE $<BUILD_INTERFACE:fovea_xsimd>)
  endif()
  target_sources(fovea PRIVATE $<TARGET_OBJECTS:${object}>)
  set_property(GLOBAL APPEND PROPERTY FOVEA_ISA_OBJECTS ${object})
endfunction()

# fovea_native_isas(VARIABLE): the sets of this machine's CPU, best last, by what the compiler knows of it. A table without tiles is
# there beside amx, of the same kernels, for Linux may refuse tiles.
function(fovea_native_isas variable)
  if(CMAKE_CROSSCOMPILING)
    message(FATAL_ERROR "FOVEA_ISAS: expected a list of instruction sets where another machine is built for, got native")
  endif()
  set(flag -march=native)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64|arm)")
    set(flag -mcpu=native)
  endif()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${flag} -E -dM -x c++ /dev/null OUTPUT_VARIABLE macros ERROR_VARIABLE ignored)
  set(found scalar)
  foreach(row "avx2:__AVX2__" "avxvnni:__AVXVNNI__" "avx512:__AVX512VL__" "avx512vnni:__AVX512VNNI__" "neon:__ARM_NEON"
              "neon_dotprod:__ARM_FEATURE_DOTPROD" "neon_i8mm:__ARM_FEATURE_MATMUL_INT8")
    string(REPLACE ":" ";" row "${row}")
    list(GET row 0 name)
    list(GET row 1 macro)
    if(macros MATCHES "#define ${macro} ")
      set(found ${name})
    endif()
  endforeach()
  if(macros MATCHES "#define __AMX_INT8__ ")
    list(APPEND found amx)
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()
