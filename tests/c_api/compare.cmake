# Runs PROGRAM with the hash of the logits that `fovea certify` finds for MODEL.
#   -D FOVEA=the command line  -D MODEL=file  -D PROGRAM=the test  -D EMULATOR=what runs both, or nothing
set(prompt "turn on the garden dehumidifier\n")
execute_process(COMMAND ${EMULATOR} ${FOVEA} certify ${MODEL} -p ${prompt} --threads 1 --json OUTPUT_VARIABLE certified
                RESULT_VARIABLE failed)
if(failed OR NOT certified MATCHES "\"hash\":\"([0-9a-f]+)\"")
  message(FATAL_ERROR "certify: expected a hash, got ${certified}")
endif()
execute_process(COMMAND ${EMULATOR} ${PROGRAM} ${CMAKE_MATCH_1} RESULT_VARIABLE failed OUTPUT_VARIABLE output)
message(STATUS "${output}")
if(failed)
  message(FATAL_ERROR "${PROGRAM}: expected status 0 with logits ${CMAKE_MATCH_1}, got ${failed}")
endif()
