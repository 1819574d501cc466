// The version of these headers, for C and C++. CMake reads the project's version from here.
#ifndef FOVEA_VERSION_H
#define FOVEA_VERSION_H

#define FOVEA_VERSION "0.1.0"

#endif
