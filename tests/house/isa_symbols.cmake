# Fails where an instruction set's objects export anything but kernels of their own. An inline function that two sets' objects share
# by name is kept once by the linker, with the instructions of either: the other's CPUs may not have them.
#
#   cmake -DNM=nm "-DOBJECTS=floats.cpp.o;quants_8.cpp.o" -P isa_symbols.cmake
#
# Names that contain xsimd_<isa> are that set's own: the namespace is renamed after it (see FoveaIsa.cmake), and unoptimised builds
# do not inline it away.
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} --extern-only --defined-only ${object} OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "isa_symbols: ${NM} ${object}: expected status 0, got ${failed}")
  endif()
  string(REGEX MATCHALL "[^\n]+" lines "${symbols}")
  set(kernels FALSE)
  set(strangers "")
  foreach(line IN LISTS lines)
    if(line MATCHES " [DRVW] _?_ZN5fovea[0-9]+(FloatsOf|QuantsOf|TilesOf)ILNS_3IsaE[0-9]+E")
      set(kernels TRUE)
    elseif(NOT line MATCHES "xsimd_[a-z]")
      string(APPEND strangers "\n  ${line}")
    endif()
  endforeach()
  if(NOT kernels)
    message(FATAL_ERROR "isa_symbols: ${object}: expected FloatsOf, QuantsOf or TilesOf, got none")
  elseif(strangers)
    message(FATAL_ERROR "isa_symbols: ${object}: expected FloatsOf, QuantsOf and TilesOf alone, got also${strangers}")
  endif()
endforeach()
