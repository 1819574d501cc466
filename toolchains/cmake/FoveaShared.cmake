# The shared library: what it shows, and a static twin of the same objects with its insides.

# Instances of the C++ library's inline functions are visible whatever our flags say; the linker leaves out all that is not ours.
target_compile_definitions(fovea PRIVATE FOVEA_SHARED)
target_link_options(fovea PRIVATE ${fovea_shared_options})
set_property(TARGET fovea APPEND PROPERTY LINK_DEPENDS ${fovea_map})
# Nothing of the C++ library is wanted, so a C program that links this needs none.
set_target_properties(fovea PROPERTIES LINKER_LANGUAGE C)

add_library(fovea_inside STATIC $<TARGET_OBJECTS:fovea>)
add_library(fovea::inside ALIAS fovea_inside)
set_target_properties(fovea_inside PROPERTIES LINKER_LANGUAGE CXX)
target_compile_features(fovea_inside INTERFACE cxx_std_20)
target_include_directories(fovea_inside INTERFACE ${PROJECT_SOURCE_DIR}/include)
if(FOVEA_THREADS)
  target_link_libraries(fovea_inside INTERFACE Threads::Threads)
endif()
target_link_libraries(fovea_inside INTERFACE ${fovea_openmp})
