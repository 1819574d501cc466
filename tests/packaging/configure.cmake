# Configures as somebody does who types `cmake -B build` without network, without doctest, or without wanting tests.
#   -D SOURCE=project  -D SCRATCH=directory  -D GENERATOR=...  -D CXX=compiler  -D CC=compiler
cmake_minimum_required(VERSION 3.22)
file(REMOVE_RECURSE ${SCRATCH})

function(configures name expected)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${SCRATCH}/${name} -G ${GENERATOR} -D CMAKE_C_COMPILER=${CC}
                          -D CMAKE_CXX_COMPILER=${CXX} -D FOVEA_FETCH=OFF ${ARGN}
                  RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(failed)
    message(FATAL_ERROR "${name}: expected to configure, got\n${output}${errors}")
  endif()
  if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "${name}: expected \"${expected}\", got\n${output}")
  endif()
  if(EXISTS ${SCRATCH}/${name}/tests)
    message(FATAL_ERROR "${name}: expected no tests, got ${SCRATCH}/${name}/tests")
  endif()
endfunction()

configures(without_doctest "-- Tests are not built: doctest is not installed" -D CMAKE_DISABLE_FIND_PACKAGE_doctest=ON)
configures(testing_off "-- Tests are not built: BUILD_TESTING is off" -D BUILD_TESTING=OFF)
