# fovea_isa(NAME FLAGS ... [KERNELS_FOR NAME...])
#
# Adds engine/kernels/isa/NAME.cpp to the library, compiled with FLAGS of its own, and its table to fovea_tables: a later
# one is a better one. KERNELS_FOR: sets that take kernels from this one, which is built where one of them is.
#
# Inline functions that are compiled under different -m flags share one symbol name, and the linker keeps one of them:
# a CPU without AVX-512 would then run AVX-512 code. So every such file is compiled apart (no unity build, no LTO), with
# xsimd's namespace renamed after the instruction set, and optimised in debug builds too: what is inlined has no symbol. Only
# a -O of the host's own flags keeps it from that. The test "isa_symbols" checks what each object exports.
function(fovea_isa name)
  cmake_parse_arguments(PARSE_ARGV 1 isa "" "" "FLAGS;KERNELS_FOR")
  set(wanted FALSE)
  foreach(user IN ITEMS ${name} ${isa_KERNELS_FOR})
    if(NOT FOVEA_ONLY_ISAS OR user IN_LIST FOVEA_ONLY_ISAS)
      set(wanted TRUE)
    endif()
  endforeach()
  if(NOT wanted)
    return()
  endif()
  fovea_find(xsimd)
  set(object fovea_${name})
  add_library(${object} OBJECT ${PROJECT_SOURCE_DIR}/engine/kernels/isa/${name}.cpp)
  target_compile_features(${object} PRIVATE cxx_std_20)
  set_target_properties(${object} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF
                                             INTERPROCEDURAL_OPTIMIZATION OFF CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${object} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(${object} PRIVATE ${fovea_definitions})
  target_compile_options(${object} PRIVATE ${fovea_engine_flags} -fno-lto ${isa_FLAGS})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Before 13, GCC warns of its own headers: the "undefined" operand of unmasked AVX-512 intrinsics.
    target_compile_options(${object} PRIVATE -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  if(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$" OR NOT CMAKE_CXX_FLAGS MATCHES "(^| )-O")
    target_compile_options(${object} PRIVATE -O3)
  endif()
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    # A sanitizer's checks make minutes of these unrolled loops' compilation. Reading or writing too far is what the
    # guard pages around every buffer of the kernel tests find, and scalar.h, the same contract, is instrumented.
    target_compile_options(${object} PRIVATE -fno-sanitize=all)
  endif()
  target_compile_definitions(${object} PRIVATE xsimd=xsimd_${name})
  target_link_libraries(${object} PRIVATE $<BUILD_INTERFACE:fovea_xsimd>)
  target_sources(fovea PRIVATE $<TARGET_OBJECTS:${object}>)
  set(fovea_tables "FOVEA_TABLE(${name}) ${fovea_tables}" PARENT_SCOPE)
  set_property(GLOBAL APPEND PROPERTY FOVEA_ISAS ${name})
endfunction()
