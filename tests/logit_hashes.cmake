# The demo model's logits, with each type of weights, are the ones golden/logit_hashes.txt names: on every machine, until
# the numerics version changes.
#   -D FOVEA=the command line  -D DEMO=demo.fovea  -D HASHES=file  -D SCRATCH=folder
cmake_minimum_required(VERSION 3.22)
file(MAKE_DIRECTORY ${SCRATCH})
file(STRINGS ${HASHES} lines)
list(POP_FRONT lines first)
foreach(line IN LISTS lines)
  string(REGEX MATCH "^([a-z0-9]+) ([0-9a-f]+)$" whole "${line}")
  set(type ${CMAKE_MATCH_1})
  set(wanted ${CMAKE_MATCH_2})
  execute_process(COMMAND ${FOVEA} convert ${DEMO} --type ${type} -o ${SCRATCH}/${type}.fovea ERROR_QUIET
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${FOVEA} certify ${SCRATCH}/${type}.fovea -p "turn on the garden dehumidifier\n"
                          --threads 1 --json OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  if(NOT output MATCHES "\"hash\":\"${wanted}\",\"equal\":true")
    message(FATAL_ERROR "${type}: expected logits ${wanted}, got ${output}")
  endif()
  string(REGEX MATCH "\"numerics_version\":([0-9]+)" whole "${output}")
  if(NOT first STREQUAL "numerics_version ${CMAKE_MATCH_1}")
    message(FATAL_ERROR "${HASHES}: expected ${first}, got ${CMAKE_MATCH_1}")
  endif()
  message(STATUS "${type} ${wanted}")
endforeach()
if(NOT lines)
  message(FATAL_ERROR "${HASHES}: expected hashes, got none")
endif()
