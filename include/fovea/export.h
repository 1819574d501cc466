// Marks what a shared library of Fovea exports: the namespaces of the public headers, marked with this, and fovea.h's
// functions. Everything else is compiled with hidden visibility.
#ifndef FOVEA_EXPORT_H
#define FOVEA_EXPORT_H

#if defined(__GNUC__)
#define FOVEA_API __attribute__((visibility("default")))
#else
#define FOVEA_API
#endif

#endif
