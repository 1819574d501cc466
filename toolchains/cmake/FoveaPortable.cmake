# What is built for machines that have a C library alone: no library of the system's but that one, glibc's symbols as 2.28 has them
# (packaging/glibc), the C++ library in each program. Python is found for the scripts.
find_package(Python 3.9 REQUIRED COMPONENTS Interpreter)
include(CheckCXXSymbolExists)
check_cxx_symbol_exists(__GLIBC__ features.h FOVEA_HAVE_GLIBC)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND FOVEA_HAVE_GLIBC)
  set(stubs ${PROJECT_BINARY_DIR}/glibc)
  execute_process(COMMAND ${Python_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/packaging/glibc/stubs.py
                          ${CMAKE_C_COMPILER} ${CMAKE_READELF} ${CMAKE_AR} ${stubs}
                  RESULT_VARIABLE failed ERROR_VARIABLE said OUTPUT_VARIABLE said)
  if(failed)
    message(STATUS "Not for glibc 2.28: what is built wants this machine's C library, or a later one\n${said}")
  else()
    add_link_options(-L${stubs})
  endif()
endif()

# fovea_install_linked(FOLDER): into FOLDER the licences of what is linked in, and a bill of materials; without Ninja or dpkg neither.
function(fovea_install_linked folder)
  install(CODE "execute_process(COMMAND ${Python_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/packaging/linked.py
                                        ${CMAKE_MAKE_PROGRAM} ${PROJECT_BINARY_DIR} ${folder} ${PROJECT_VERSION})")
endfunction()
