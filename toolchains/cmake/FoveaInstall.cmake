# Install rules: the library and its headers, a CMake package (find_package(fovea)), a pkg-config file, the command line
# with its man page and completion, the documents; and archives of all that (cpack).
include(CMakePackageConfigHelpers)

install(TARGETS fovea EXPORT fovea-targets)
if(TARGET fovea_host)
  install(TARGETS fovea_host EXPORT fovea-targets)
endif()
install(DIRECTORY include/fovea DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")  # as README.md has them
if(TARGET fovea_cli)
  install(TARGETS fovea_cli)
  install(FILES docs/fovea.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES toolchains/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME fovea)
endif()

# A static library leaves the system's threads to whoever links it; a shared one brings its own.
set(FOVEA_WANTS_THREADS FALSE)
set(FOVEA_PKGCONFIG_LIBS "")
set(FOVEA_PKGCONFIG_PRIVATE "")
if(FOVEA_THREADS AND fovea_library_type STREQUAL "STATIC_LIBRARY")
  set(FOVEA_WANTS_THREADS TRUE)
  set(FOVEA_PKGCONFIG_LIBS " ${CMAKE_THREAD_LIBS_INIT}")  # often nothing: threads are in the C library
elseif(FOVEA_THREADS)
  set(FOVEA_PKGCONFIG_PRIVATE " ${CMAKE_THREAD_LIBS_INIT}")
endif()
# With the C++ library's assertions on, as distributions build, what fails them is in that library.
include(CheckCXXSymbolExists)
check_cxx_symbol_exists(_GLIBCXX_ASSERTIONS vector FOVEA_HAVE_ASSERTIONS)
check_cxx_symbol_exists(__GLIBCXX__ vector FOVEA_HAVE_LIBSTDCXX)
if(FOVEA_HAVE_ASSERTIONS AND FOVEA_HAVE_LIBSTDCXX AND fovea_library_type STREQUAL "STATIC_LIBRARY")
  string(APPEND FOVEA_PKGCONFIG_LIBS " -lstdc++")
endif()
if(fovea_is_elf AND fovea_library_type STREQUAL "STATIC_LIBRARY")  # a plugin shows nothing of a library in it
  string(APPEND FOVEA_PKGCONFIG_LIBS " -Wl,--exclude-libs,libfovea.a")
endif()
string(REGEX REPLACE " $" "" FOVEA_PKGCONFIG_LIBS "${FOVEA_PKGCONFIG_LIBS}")

set(fovea_package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/fovea)
install(EXPORT fovea-targets NAMESPACE fovea:: DESTINATION ${fovea_package_directory})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/../fovea-config.cmake.in fovea-config.cmake
                              INSTALL_DESTINATION ${fovea_package_directory} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(fovea-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fovea-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/fovea-config-version.cmake
        DESTINATION ${fovea_package_directory})

# Relative to the file itself, so that an installed tree can be moved.
file(RELATIVE_PATH FOVEA_PKGCONFIG_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" FOVEA_PKGCONFIG_PREFIX ${FOVEA_PKGCONFIG_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/../fovea.pc.in fovea.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fovea.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET fovea_host)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/../fovea_host.pc.in fovea_host.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fovea_host.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_GENERATOR TGZ)
  find_program(FOVEA_DPKG dpkg)
  mark_as_advanced(FOVEA_DPKG)
  if(FOVEA_DPKG)
    list(APPEND CPACK_GENERATOR DEB)
  endif()
  set(CPACK_PACKAGE_CONTACT "the Fovea maintainers <maintainers@fovea.invalid>")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
  set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/LICENSE)
  set(CPACK_RESOURCE_FILE_README ${CMAKE_CURRENT_SOURCE_DIR}/README.md)
  set(CPACK_STRIP_FILES ON)
  find_program(FOVEA_SHLIBDEPS dpkg-shlibdeps)
  mark_as_advanced(FOVEA_SHLIBDEPS)
  if(FOVEA_SHLIBDEPS)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  endif()
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  include(CPack)
endif()
