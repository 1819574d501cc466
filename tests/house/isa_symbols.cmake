# Fails where an instruction set's object exports anything but its tables. An inline function that two such objects share
# by name is kept once by the linker, with the instructions of either: the other's CPUs may not have them.
#
#   cmake -DNM=nm -DISA=avx2 -DOBJECT=avx2.cpp.o -P isa_symbols.cmake
#
# Names that contain xsimd_<isa> are that object's own: the namespace is renamed after it (see FoveaIsa.cmake), and
# unoptimised builds do not inline it away.
execute_process(COMMAND ${NM} --extern-only --defined-only ${OBJECT} OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "isa_symbols: ${NM} ${OBJECT}: expected status 0, got ${failed}")
endif()
string(REGEX MATCHALL "[^\n]+" lines "${symbols}")
set(table FALSE)
set(strangers "")
foreach(line IN LISTS lines)
  if(line MATCHES " [DR] _?_ZN5fovea[0-9]+kernels_${ISA}E$")
    set(table TRUE)
  elseif(NOT line MATCHES " [DR] _?_ZN5fovea[0-9]+(floats|quants)_${ISA}E$" AND NOT line MATCHES "xsimd_${ISA}")
    string(APPEND strangers "\n  ${line}")
  endif()
endforeach()
if(NOT table)
  message(FATAL_ERROR "isa_symbols: ${OBJECT}: expected kernels_${ISA}, got none")
elseif(strangers)
  message(FATAL_ERROR "isa_symbols: ${OBJECT}: expected kernels_${ISA}, floats_${ISA} and quants_${ISA} alone, got also${strangers}")
endif()
