# Plugins with Fovea in them, and two versions of it in one program: a part of consumers.cmake.

# Fails if the shared object at `path` shows a symbol of Fovea's.
function(shows_nothing path)
  run(${NM} --dynamic --defined-only ${path})
  string(REGEX MATCHALL "[^\n]*fovea[^\n]*" shown "${output}")
  if(shown)
    list(JOIN shown "\n" shown)
    message(FATAL_ERROR "${path}: expected no symbol of Fovea's, got\n${shown}")
  endif()
endfunction()

# Links SCRATCH/NAME.so with flags.
function(make_plugin name)
  run(${CXX} ${own} -std=c++20 -fPIC -fvisibility=hidden -shared ${SOURCE}/tests/consumers/plugins/plugin.cpp ${ARGN}
      -o ${SCRATCH}/${name}.so)
  shows_nothing(${SCRATCH}/${name}.so)
endfunction()

# A plugin with an archive that is linked by its name alone, from a project that has Fovea's sources.
function(hold_hidden_archive)
  file(GLOB_RECURSE archive ${SCRATCH}/consumer/libfovea.a)
  make_plugin(hidden -I${SOURCE}/include ${archive})
endfunction()

# Makes the archive at `path` another version, which names itself and one error otherwise: its words, not its code, are exchanged.
function(make_other_version path)
  run(${CMAKE_COMMAND} -E env LC_ALL=C sed -i -e "s/not a Fovea file/no file of 9.9.9/g" -e "s/\\b${version}\\b/9.9.9/g" ${path})
endfunction()

# The flags of an installed library and of another version of it: first_flags, other_flags. What becomes of plugins: mode.
function(make_two_versions)
  ask_pkg_config(${SCRATCH}/prefix fovea)
  set(first_flags ${flags} -Wl,-rpath,${libraries})
  if(HOW STREQUAL "static")
    file(COPY ${SCRATCH}/prefix/ DESTINATION ${SCRATCH}/other_prefix)
    ask_pkg_config(${SCRATCH}/other_prefix fovea)
    make_other_version(${libraries}/libfovea.a)
    set(other_flags ${flags})
    set(mode keep PARENT_SCOPE)
  else()
    set(mode close PARENT_SCOPE)
    set(archive ${SCRATCH}/libother.a)
    file(COPY_FILE ${BUILD}/libfovea_inside.a ${archive})
    make_other_version(${archive})
    file(READ ${BUILD}/fovea.map map)
    string(REGEX REPLACE "FOVEA_[0-9.]+" "FOVEA_9.9" map "${map}")
    file(WRITE ${SCRATCH}/other.map "${map}")
    set(library ${SCRATCH}/libfovea.so.9.9)
    run(${CC} ${own} -shared -Wl,--whole-archive ${archive} -Wl,--no-whole-archive -Wl,--version-script=${SCRATCH}/other.map
        -Wl,-Bsymbolic-functions -Wl,-z,nodelete -Wl,-soname,libfovea.so.9.9 -lm -lpthread -o ${library})
    set(other_flags -I${SOURCE}/include ${library} -Wl,-rpath,${SCRATCH})
  endif()
  set(libraries ${libraries} PARENT_SCOPE)
  set(first_flags ${first_flags} PARENT_SCOPE)
  set(other_flags ${other_flags} PARENT_SCOPE)
endfunction()

# A program and plugins of two versions, whose symbols see each other: each has the words of its own version.
function(hold_plugins)
  file(STRINGS ${SOURCE}/include/fovea/version.h version REGEX "^#define FOVEA_VERSION ")
  string(REGEX MATCH "[0-9.]+" version "${version}")
  make_two_versions()
  make_plugin(first ${first_flags})
  make_plugin(other ${other_flags})
  run(${CC} ${own} -rdynamic ${SOURCE}/tests/consumers/plugins/host.c ${first_flags} -ldl -o ${SCRATCH}/host)
  set(first "${version}: not a Fovea file: not a Fovea file\n")
  set(other "9.9.9: no file of 9.9.9: no file of 9.9.9\n")
  foreach(order "first;other" "other;first")
    list(GET order 0 one)
    list(GET order 1 two)
    run(${SCRATCH}/host ${mode} ${SCRATCH}/${one}.so ${SCRATCH}/${two}.so)
    if(NOT output STREQUAL "${${one}}${${two}}${version}\n")
      message(FATAL_ERROR "two versions in one program: expected\n${${one}}${${two}}${version}\ngot\n${output}")
    endif()
  endforeach()
  message(STATUS "two versions in one program: each runs its own code and threads, and both may be closed")
  if(HOW STREQUAL "static")  # linked by hand, without what keeps it loaded
    make_plugin(unloadable -I${SOURCE}/include ${libraries}/libfovea.a -Wl,--exclude-libs,libfovea.a -lm -lpthread)
    run(${SCRATCH}/host end ${SCRATCH}/unloadable.so)
  endif()
endfunction()
