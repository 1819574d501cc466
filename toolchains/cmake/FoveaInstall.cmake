# Install rules: the library and its headers, a CMake package (find_package(fovea)), a pkg-config file, the command line.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(fovea PROPERTIES VERSION ${PROJECT_VERSION}
                                       SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
install(TARGETS fovea EXPORT fovea-targets)
install(DIRECTORY include/fovea DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET fovea_cli)
  install(TARGETS fovea_cli)
endif()

# A static library leaves OpenMP to whoever links it; a shared one brings its own.
get_target_property(fovea_library_type fovea TYPE)
set(FOVEA_WANTS_OPENMP FALSE)
set(FOVEA_PKGCONFIG_OPENMP "")
if(OpenMP_CXX_FOUND AND fovea_library_type STREQUAL "STATIC_LIBRARY")
  set(FOVEA_WANTS_OPENMP TRUE)
  set(FOVEA_PKGCONFIG_OPENMP " ${OpenMP_CXX_FLAGS}")
endif()

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
