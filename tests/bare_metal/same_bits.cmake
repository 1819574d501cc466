# Runs PROGRAM in the emulator and holds its answer against what the command line computes here from the same model, its
# logits' hash against the one in HASHES, its stack against what `fovea plan --ram` counts.
#   -D FOVEA=the command line  -D MODEL=file  -D TYPE=its weights'  -D HASHES=golden/logit_hashes.txt
#   -D EMULATOR=command  -D PROGRAM=elf  -D SIZE=size
cmake_minimum_required(VERSION 3.22)
set(prompt "turn on the garden dehumidifier")
set(most_stack 8192)

execute_process(COMMAND ${FOVEA} run ${MODEL} -p ${prompt} OUTPUT_VARIABLE answer ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS ${HASHES} hash REGEX "^${TYPE} ")
string(REPLACE "${TYPE} " "" hash "${hash}")

execute_process(COMMAND ${EMULATOR} ${PROGRAM} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
execute_process(COMMAND ${SIZE} ${PROGRAM} OUTPUT_VARIABLE sizes)
message(STATUS "${output}${sizes}")
if(status)
  message(FATAL_ERROR "${PROGRAM}: expected status 0, got ${status}")
endif()
foreach(wanted "${answer}" "logits ${hash}\n")
  string(FIND "\n${output}" "\n${wanted}" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "${PROGRAM}: expected the desktop's ${wanted}, got ${output}")
  endif()
endforeach()
string(REGEX MATCH "stack bytes ([0-9]+)" line "${output}")
if(NOT line OR CMAKE_MATCH_1 GREATER most_stack)
  message(FATAL_ERROR "${PROGRAM}: expected at most ${most_stack} bytes of stack, got '${line}'")
endif()
