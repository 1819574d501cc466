# Installs the library and builds somebody else's program against it, in each way there is.
#   -D HOW=static|shared|archive|subdirectory|fetchcontent|makefile  -D SOURCE=project  -D BUILD=its build  -D SCRATCH=directory
#   -D CXX=compiler  -D CC=C compiler  -D FLAGS=the flags of both  -D GENERATOR=...  -D NM=nm
#   -D BUILD_TYPE=the project's  -D ISA=the one instruction set that the subdirectory's build has; others have scalar alone
#   -D ARCHIVE=what HOW=archive unpacks, away from where it was built
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Debug's builds are without -g, which nothing here looks at: kernels take half as long again to compile with it.
function(build_consumer how)
  run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumers -B ${SCRATCH}/consumer -G ${GENERATOR} -D HOW=${how}
      -D FOVEA_SOURCE=${SOURCE} -D CMAKE_PREFIX_PATH=${SCRATCH}/prefix -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG=
      -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_CXX_FLAGS=${FLAGS} -D FOVEA_ISAS=${ISA} ${ARGN})
  run(${CMAKE_COMMAND} --build ${SCRATCH}/consumer)
  run(${SCRATCH}/consumer/consumer)
  message(STATUS "${output}")
  if(EXISTS ${SCRATCH}/consumer/shared_consumer)
    run(${SCRATCH}/consumer/shared_consumer)
  endif()
  if(EXISTS ${SCRATCH}/consumer/host_consumer)
    run(${SCRATCH}/consumer/host_consumer ${SOURCE}/tools/demo/demo.fovea)
    message(STATUS "${output}")
  endif()
endfunction()

# Sets `libraries`, a prefix's folder of them, and `flags`, what pkg-config says there of a library.
function(ask_pkg_config prefix library)
  find_program(PKG_CONFIG NAMES pkg-config pkgconf REQUIRED)
  file(GLOB_RECURSE file ${prefix}/${library}.pc)
  cmake_path(GET file PARENT_PATH directory)
  run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${directory} ${PKG_CONFIG} --cflags --libs ${library})
  separate_arguments(flags UNIX_COMMAND "${output}")
  cmake_path(GET directory PARENT_PATH libraries)
  set(flags ${flags} PARENT_SCOPE)
  set(libraries ${libraries} PARENT_SCOPE)
endfunction()

function(build_with_pkg_config)
  ask_pkg_config(${SCRATCH}/prefix fovea)
  # A C program, linked by the C compiler, which knows nothing of the C++ library.
  run(${CC} ${own} ${SOURCE}/tests/consumers/c/main.c ${flags} -o ${SCRATCH}/c-by-pkg-config)
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${libraries} ${SCRATCH}/c-by-pkg-config)
  message(STATUS "${output}")
  run(${CXX} -std=c++20 ${own} ${SOURCE}/tests/consumers/main.cpp ${flags} -o ${SCRATCH}/by-pkg-config)
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${libraries} ${SCRATCH}/by-pkg-config)
  message(STATUS "${output}")
  if(EXISTS ${libraries}/pkgconfig/fovea_host.pc)  # a C program of the host library, of which it needs nothing else
    ask_pkg_config(${SCRATCH}/prefix fovea_host)
    run(${CC} ${own} ${SOURCE}/examples/chat.c ${flags} -o ${SCRATCH}/chat-by-pkg-config)
    run(sh -c "echo hi | LD_LIBRARY_PATH=${libraries} ${SCRATCH}/chat-by-pkg-config ${SOURCE}/tools/demo/demo.fovea")
  endif()
endfunction()

# A project of C alone.
function(build_c_consumer)
  run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumers/c -B ${SCRATCH}/c -G ${GENERATOR} -D CMAKE_C_COMPILER=${CC}
      -D CMAKE_C_FLAGS=${FLAGS} -D CMAKE_PREFIX_PATH=${SCRATCH}/prefix -D FOVEA_INCLUDE=${SCRATCH}/prefix/include)
  run(${CMAKE_COMMAND} --build ${SCRATCH}/c)
  run(${SCRATCH}/c/app)
endfunction()

if(NOT HOW STREQUAL "subdirectory")
  set(ISA scalar)
endif()
file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
include(${SOURCE}/tests/packaging/plugins.cmake)
separate_arguments(own UNIX_COMMAND "${FLAGS}")
if(HOW MATCHES "^(static|shared|archive)$")
  if(HOW STREQUAL "shared")
    set(BUILD ${SCRATCH}/library)
    run(${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G ${GENERATOR} -D BUILD_SHARED_LIBS=ON -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG=
        -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_C_COMPILER=${CC} -D CMAKE_CXX_FLAGS=${FLAGS} -D FOVEA_TOOLS=OFF -D FOVEA_TESTS=OFF
        -D FOVEA_EXAMPLES=OFF -D FOVEA_ISAS=${ISA})
    run(${CMAKE_COMMAND} --build ${BUILD})
  endif()
  if(HOW STREQUAL "archive")
    file(ARCHIVE_EXTRACT INPUT ${ARCHIVE} DESTINATION ${SCRATCH})
    file(GLOB unpacked ${SCRATCH}/fovea-*)
    file(RENAME ${unpacked} ${SCRATCH}/prefix)
  else()
    run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/prefix)
  endif()
  build_consumer(installed)
  build_c_consumer()
  build_with_pkg_config()
  if(CMAKE_HOST_SYSTEM_NAME STREQUAL "Linux" AND NOT HOW STREQUAL "archive")  # which plugins want a build of
    hold_plugins()
  endif()
  file(GLOB_RECURSE libraries ${SCRATCH}/prefix/libfovea.a ${SCRATCH}/prefix/libfovea.so ${SCRATCH}/prefix/libfovea.dylib
                              ${SCRATCH}/prefix/libfovea_host.so ${SCRATCH}/prefix/libfovea_host.dylib)
  if(NOT FLAGS MATCHES "-fsanitize|-D_GLIBCXX|-fprofile|--coverage")  # which want more of the C++ library, or add symbols
    set(plain ON)  # instances of inline functions, where those are not inlined
    if(BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
      set(plain OFF)
    endif()
    foreach(library IN LISTS libraries)
      run(${CMAKE_COMMAND} -D NM=${NM} -D LIBRARY=${library} -D HEADERS=${SCRATCH}/prefix/include/fovea -D WEAK_ALLOWED=${plain}
          -P ${SOURCE}/tests/packaging/symbols.cmake)
      message(STATUS "${output}")
    endforeach()
  endif()
elseif(HOW STREQUAL "makefile")
  find_program(MAKE NAMES gmake make REQUIRED)
  run(${MAKE} -j2 -C ${SCRATCH} -f ${SOURCE}/tests/consumers/Makefile FOVEA=${SOURCE} CXX=${CXX} "CXXFLAGS=-O0 ${FLAGS}")
  run(${SCRATCH}/consumer)
  message(STATUS "${output}")
else()
  build_consumer(${HOW} -D CMAKE_UNITY_BUILD=ON)  # a project may say so; the Makefile shows that each file compiles by itself
  if(CMAKE_HOST_SYSTEM_NAME STREQUAL "Linux")
    hold_hidden_archive()
  endif()
  # A host without optimisation must not get another CPU's inline functions.
  file(GLOB_RECURSE objects ${SCRATCH}/consumer/*/fovea_${ISA}_*/*.o ${SCRATCH}/consumer/*/fovea_${ISA}_*/*.obj)
  if(HOW STREQUAL "subdirectory" AND objects AND NOT FLAGS MATCHES "-fsanitize|-O")
    run(${CMAKE_COMMAND} -D NM=${NM} "-D OBJECTS=${objects}" -P ${SOURCE}/tests/house/isa_symbols.cmake)
  endif()
endif()
