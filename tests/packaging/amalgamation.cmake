# The engine of one file, by one compiler call: a C program's answer is the command line's, and all logits are the committed ones. Both
# again with AVX2's kernels, the file compiled once more, on x86-64 where headers of xsimd are.
#   -D SOURCE=project  -D SCRATCH=directory  -D CXX=compiler  -D CC=compiler  -D FOVEA=the command line  -D PYTHON=interpreter
#   [-D FOLDER=what amalgamation.py wrote already]
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${SCRATCH} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE said)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}: expected status 0, got ${result}\n${output}${said}")
  endif()
  if(said)
    message(FATAL_ERROR "${ARGV}: expected no message, got ${said}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# hold(NAME LINKER OBJECT...): C programs of these objects against the command line and the committed logits.
function(hold name linker)
  foreach(program examples/complete tests/packaging/logits)
    get_filename_component(short ${program} NAME)
    run(${CC} -std=c11 -D_POSIX_C_SOURCE=200112L -I ${FOLDER} -c ${SOURCE}/${program}.c -o ${short}.o)
    run(${linker} ${short}.o ${ARGN} -lm -lpthread -o ${short}-${name})
  endforeach()
  run(${SCRATCH}/complete-${name} ${demo} ${prompt})
  if(NOT output STREQUAL answer)
    message(FATAL_ERROR "${name}: expected the answer ${answer}, got ${output}")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -D FOVEA=${FOVEA} -D HASH=${SCRATCH}/logits-${name} -D DEMO=${demo}
                          -D HASHES=${SOURCE}/tests/golden/logit_hashes.txt -D SCRATCH=${SCRATCH}/hashes
                          -P ${SOURCE}/tests/programs/logit_hashes.cmake COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
set(demo ${SOURCE}/tools/demo/demo.fovea)
set(prompt "turn on the lights in the kitchen")
if(NOT FOLDER)
  set(FOLDER ${SCRATCH}/amalgamation)
  run(${PYTHON} -B ${SOURCE}/packaging/amalgamation.py ${SOURCE} ${FOLDER})
endif()
execute_process(COMMAND ${FOVEA} run -p ${prompt} OUTPUT_VARIABLE answer COMMAND_ERROR_IS_FATAL ANY)

# Bits depend on no level of optimization, and this one compiles in 3/5 of the time of -O2.
set(compile ${CXX} -std=c++20 -O1 -I ${FOLDER} -c ${FOLDER}/fovea.cpp)
run(${compile} -o scalar.o)
hold(scalar ${CXX} scalar.o)

# Without exceptions it asks nothing of the C++ library, so that a C compiler links it.
execute_process(COMMAND ${CXX} -E -dM -x c++ -include xsimd/xsimd.hpp /dev/null OUTPUT_VARIABLE macros ERROR_QUIET)
if(macros MATCHES "#define __x86_64__ " AND macros MATCHES "XSIMD_VERSION_MAJOR")
  list(APPEND compile -fno-exceptions -ffp-contract=off -D FOVEA_UNCONTRACTED)
  run(${compile} -mavx2 -mfma -mf16c -mprfchw -D FOVEA_ISA=avx2 -D xsimd=xsimd_avx2 -o avx2.o)
  run(${compile} -D "FOVEA_TABLES=FOVEA_TABLE(avx2)" -o dispatch.o)
  hold(avx2 ${CC} dispatch.o avx2.o)
endif()
