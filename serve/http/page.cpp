#include "serve/http/server.h"

extern "C" {
// page.S
extern const char fovea_page_begin[];
extern const char fovea_page_end[];
}

namespace fovea::serve {

std::string_view page() noexcept {
    return {fovea_page_begin, static_cast<std::size_t>(fovea_page_end - fovea_page_begin)};
}

}  // namespace fovea::serve
