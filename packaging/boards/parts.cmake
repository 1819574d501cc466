# Which parts of the engine there are, and which a board leaves out if nothing else is said.
set(FOVEA_BOARDS_PARTS @PARTS@)
set(FOVEA_BOARDS_WITHOUT @WITHOUT@)
set(FOVEA_BOARDS_FLAGS -Os -ffp-contract=off -fno-exceptions -fno-rtti -fno-math-errno -fno-threadsafe-statics
                       -ffunction-sections -fdata-sections -Wno-psabi)

# fovea_definition(OUT PART...): the value of FOVEA_WITHOUT that the source file takes.
function(fovea_definition out)
  list(TRANSFORM ARGN PREPEND "Part::")
  list(JOIN ARGN "," joined)
  set(${out} "${joined}" PARENT_SCOPE)
endfunction()

# fovea_parts_left_out(OUT): that value, of what Kconfig says.
function(fovea_parts_left_out out)
  set(without "")
  foreach(part IN LISTS FOVEA_BOARDS_PARTS)
    string(TOUPPER ${part} name)
    if(NOT CONFIG_FOVEA_${name})
      list(APPEND without ${part})
    endif()
  endforeach()
  fovea_definition(joined ${without})
  set(${out} "${joined}" PARENT_SCOPE)
endfunction()
