# Configures as somebody does who types `cmake -B build` without network, without doctest, or without wanting tests.
#   -D SOURCE=project  -D SCRATCH=directory  -D GENERATOR=...  -D CXX=compiler  -D CC=compiler
cmake_minimum_required(VERSION 3.22)
file(REMOVE_RECURSE ${SCRATCH})

# Nobody listens at a proxy like this one: no host is reached.
set(offline ${CMAKE_COMMAND} -E env http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9)

function(configures name expected)
  execute_process(COMMAND ${offline} ${CMAKE_COMMAND} -S ${SOURCE} -B ${SCRATCH}/${name} -G ${GENERATOR}
                          -D CMAKE_C_COMPILER=${CC} -D CMAKE_CXX_COMPILER=${CXX} ${ARGN}
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
configures(fetching_off "-- Tests are not built: doctest is not installed" -D CMAKE_DISABLE_FIND_PACKAGE_doctest=ON
           -D FOVEA_FETCH=OFF)

# Systems without files and threads by other names than Generic, which have the library alone.
foreach(system PICO Zephyr FreeRTOS WASI)
  configures(${system} "Configuring done" -D CMAKE_SYSTEM_NAME=${system} -D CMAKE_SYSTEM_PROCESSOR=arm
             -D CMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY)
  file(STRINGS ${SCRATCH}/${system}/CMakeCache.txt options REGEX "^FOVEA_(THREADS|TOOLS|HOST|TESTS|INSTALL):")
  if(NOT options OR options MATCHES "=ON")
    message(FATAL_ERROR "${system}: expected no threads, programs or tests, got ${options}")
  endif()
endforeach()

# What is wanted and cannot be had ends it soon, by its name and that of its package.
function(refuses name expected)
  execute_process(COMMAND ${offline} ${CMAKE_COMMAND} -S ${SOURCE} -B ${SCRATCH}/${name} -G ${GENERATOR}
                          -D CMAKE_C_COMPILER=${CC} -D CMAKE_CXX_COMPILER=${CXX} ${ARGN}
                  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE errors TIMEOUT 300)
  string(REGEX REPLACE "[ \n]+" " " errors "${errors}")
  if(NOT failed OR NOT errors MATCHES "${expected}")
    message(FATAL_ERROR "${name}: expected \"${expected}\", got ${failed}, ${errors}")
  endif()
endfunction()
refuses(no_network "CLI11 2.1 or newer is wanted .Debian and Ubuntu: libcli11-dev.: expected to fetch https://"
        -D CMAKE_DISABLE_FIND_PACKAGE_CLI11=ON -D FOVEA_TESTS=OFF)
refuses(no_fetching "CLI11 2.1 or newer is wanted .Debian and Ubuntu: libcli11-dev., none was found, and FOVEA_FETCH is off"
        -D CMAKE_DISABLE_FIND_PACKAGE_CLI11=ON -D FOVEA_TESTS=OFF -D FOVEA_FETCH=OFF)
