# fovea_find(NAME): the system's package first, a copy pinned by its hash second.
#
# Header-only projects are downloaded but not configured: we take their headers and none of their build.
include(FetchContent)
if(POLICY CMP0135)
  cmake_policy(SET CMP0135 NEW)  # a downloaded file is as old as its extraction
endif()

# Fetches URL into a directory that OUT names, unless fetching is off; then says what to install. WHAT is for people.
function(fovea_fetch out name what packages url sha256)
  if(NOT FOVEA_FETCH)
    message(FATAL_ERROR "${what} is wanted (Debian and Ubuntu: ${packages}), none was found, and FOVEA_FETCH is off")
  endif()
  message(STATUS "${what} is not installed (Debian and Ubuntu: ${packages}): taking ${url}")
  # Once, and at most until nothing has come for half a minute: CMake's own way tries again for twenty minutes where there is
  # no network.
  string(TOUPPER fovea_${name} upper)
  set(archive ${PROJECT_BINARY_DIR}/fetched/${name}.tar.gz)
  if(NOT FETCHCONTENT_SOURCE_DIR_${upper})
    file(DOWNLOAD ${url} ${archive} EXPECTED_HASH SHA256=${sha256} INACTIVITY_TIMEOUT 30 STATUS status)
    list(POP_FRONT status failed)
    if(failed)
      file(REMOVE ${archive})
      message(FATAL_ERROR "${what} is wanted (Debian and Ubuntu: ${packages}): expected to fetch ${url}, got: ${status}")
    endif()
  endif()
  # A subdirectory without a CMakeLists.txt: nothing of the project is built.
  FetchContent_Declare(fovea_${name} URL ${archive} URL_HASH SHA256=${sha256} SOURCE_SUBDIR .headers-only)
  FetchContent_MakeAvailable(fovea_${name})
  set(${out} ${fovea_${name}_SOURCE_DIR} PARENT_SCOPE)
endfunction()

# A target of the name that the project's own package would have given.
function(fovea_headers target directory)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${directory})
endfunction()

# fovea_apart(TARGET FOLDER): when cross-compiling, a target's headers by a link to their folder alone, for beside it lie headers of
# this machine's C library.
function(fovea_apart target folder)
  get_target_property(include ${target} INTERFACE_INCLUDE_DIRECTORIES)
  list(GET include 0 include)
  if(CMAKE_CROSSCOMPILING AND EXISTS ${include}/stdio.h)
    set(apart ${PROJECT_BINARY_DIR}/headers)
    file(MAKE_DIRECTORY ${apart})
    file(CREATE_LINK ${include}/${folder} ${apart}/${folder} SYMBOLIC)
    set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${apart} INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${apart})
  endif()
endfunction()

function(fovea_find_xsimd)
  # xsimd's own CMake package links a library that is not there in some releases and is not found when
  # cross-compiling; the headers are all we need.
  find_path(FOVEA_XSIMD_INCLUDE xsimd/xsimd.hpp DOC "The directory that holds xsimd/xsimd.hpp")
  set(include "")
  if(FOVEA_XSIMD_INCLUDE)
    file(STRINGS ${FOVEA_XSIMD_INCLUDE}/xsimd/config/xsimd_config.hpp version REGEX "define XSIMD_VERSION_MAJOR")
    if(version MATCHES "([0-9]+)" AND CMAKE_MATCH_1 GREATER_EQUAL 8)  # Ubuntu 22.04 has 7, another interface
      set(include ${FOVEA_XSIMD_INCLUDE})
    endif()
  endif()
  if(NOT include)
    fovea_fetch(source xsimd "xsimd 8 or newer" libxsimd-dev https://github.com/xtensor-stack/xsimd/archive/8.1.0.tar.gz
                d52551360d37709675237d2a0418e28f70995b5b7cdad7c674626bcfbbf48328)
    set(include ${source}/include)
  endif()
  add_library(fovea_xsimd INTERFACE)
  target_include_directories(fovea_xsimd SYSTEM INTERFACE ${include})
  fovea_apart(fovea_xsimd xsimd)
endfunction()

function(fovea_find_json)
  find_package(nlohmann_json 3.10 QUIET)
  if(NOT nlohmann_json_FOUND)
    fovea_fetch(source json "nlohmann_json 3.10 or newer" nlohmann-json3-dev
                https://github.com/nlohmann/json/archive/v3.11.2.tar.gz
                d69f9deb6a75e2580465c6c4c5111b89c4dc2fa94e3a85fcd2ffcd9a143d9273)
    fovea_headers(nlohmann_json::nlohmann_json ${source}/include)
  endif()
  fovea_apart(nlohmann_json::nlohmann_json nlohmann)
endfunction()

function(fovea_find_cli11)
  find_package(CLI11 2.1 QUIET)
  if(NOT CLI11_FOUND)
    fovea_fetch(source cli11 "CLI11 2.1 or newer" libcli11-dev
                https://github.com/CLIUtils/CLI11/archive/v2.1.2.tar.gz
                26291377e892ba0e5b4972cdfd4a2ab3bf53af8dac1f4ea8fe0d1376b625c8cb)
    fovea_headers(CLI11::CLI11 ${source}/include)
  endif()
  fovea_apart(CLI11::CLI11 CLI)
endfunction()

function(fovea_find_doctest)
  find_package(doctest 2.4 QUIET)
  if(NOT doctest_FOUND)
    fovea_fetch(source doctest "doctest 2.4 or newer" doctest-dev
                https://github.com/doctest/doctest/archive/v2.4.9.tar.gz
                19b2df757f2f3703a5e63cee553d85596875f06d91a3333acd80a969ef210856)
    fovea_headers(doctest::doctest ${source})
  endif()
endfunction()

function(fovea_find_benchmark)
  find_package(benchmark 1.6 QUIET)
  if(NOT benchmark_FOUND)
    fovea_fetch(source benchmark "Google Benchmark 1.6 or newer" libbenchmark-dev
                https://github.com/google/benchmark/archive/refs/tags/v1.7.1.tar.gz
                6430e4092653380d9dc4ccb45a1e2dc9259d581f4866dc0759713126056bc1d7)
    # The only one with something to compile.
    set(BENCHMARK_ENABLE_TESTING OFF CACHE INTERNAL "")
    set(BENCHMARK_ENABLE_INSTALL OFF CACHE INTERNAL "")
    set(BENCHMARK_ENABLE_WERROR OFF CACHE INTERNAL "")
    add_subdirectory(${source} ${CMAKE_BINARY_DIR}/_deps/benchmark EXCLUDE_FROM_ALL)
  endif()
endfunction()

# The server's HTTP. Boost is too large to fetch: without it `fovea serve` says what it wants. FOUND: whether it is there.
function(fovea_find_beast found)
  find_path(FOVEA_BOOST_INCLUDE boost/beast/http.hpp DOC "The directory that holds boost/beast/http.hpp")
  set(${found} OFF PARENT_SCOPE)
  set(version 0)
  if(FOVEA_BOOST_INCLUDE)
    file(STRINGS ${FOVEA_BOOST_INCLUDE}/boost/version.hpp version REGEX "define BOOST_VERSION ")
    string(REGEX MATCH "[0-9]+" version "${version}")
  endif()
  if(version LESS 107400)
    message(STATUS "`fovea serve` is not built: Boost 1.74 or newer is not installed (Debian and Ubuntu: libboost-dev)")
    return()
  endif()
  find_package(Threads REQUIRED)
  add_library(fovea_beast INTERFACE)
  target_include_directories(fovea_beast SYSTEM INTERFACE ${FOVEA_BOOST_INCLUDE})
  fovea_apart(fovea_beast boost)
  # Before 1.77 Boost knows compilers' versions alone, and takes std::result_of, which C++20 has not and libc++ leaves out.
  target_compile_definitions(fovea_beast INTERFACE BOOST_ASIO_HAS_STD_INVOKE_RESULT=1)
  target_link_libraries(fovea_beast INTERFACE Threads::Threads)
  set(${found} ON PARENT_SCOPE)
endfunction()

function(fovea_find name)
  set(targets xsimd fovea_xsimd json nlohmann_json::nlohmann_json cli11 CLI11::CLI11 doctest doctest::doctest
              benchmark benchmark::benchmark)
  list(FIND targets ${name} at)
  if(at EQUAL -1)
    message(FATAL_ERROR "fovea_find: unknown dependency ${name}")
  endif()
  math(EXPR at "${at} + 1")
  list(GET targets ${at} target)
  if(NOT TARGET ${target})  # the host project may have brought it
    cmake_language(CALL fovea_find_${name})
    get_target_property(imported ${target} IMPORTED)
    if(imported)  # else only this directory and those below it would know it
      set_property(TARGET ${target} PROPERTY IMPORTED_GLOBAL TRUE)
    endif()
  endif()
endfunction()
