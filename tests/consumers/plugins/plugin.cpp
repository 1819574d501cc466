// A plugin with a Fovea of its own, which it names by the C interface and by the C++ one.
#include <cstdio>

#include "fovea/fovea.h"
#include "fovea/status.h"

extern "C" __attribute__((visibility("default"))) void describe_plugin() {
    const fovea::StatusLine line(fovea::Status{.code = fovea::Code::bad_magic});
    std::printf("%s: %s: %s\n", fovea_version(), fovea_code_name(FOVEA_BAD_MAGIC), line.c_str());
}
