// GET /health, /metrics, /api/version and the page at "/": what the server says of itself.
#include "fovea/version.h"
#include "serve/api/endpoint.h"

extern "C" {
// page.S
extern const char fovea_page_begin[];
extern const char fovea_page_end[];
}

namespace fovea::serve {

Reply endpoints::tell_health(Call& call, Service&) {
    Reply reply = reply_of({{"status", call.stopping ? "stopping" : "ok"}});
    if (call.stopping) reply.status = 503;
    return reply;
}

Reply endpoints::tell_metrics(Call&, Service& service) {
    return {.body = service.metrics.text(), .content_type = "text/plain; version=0.0.4"};
}

Reply endpoints::ollama_version(Call&, Service&) { return reply_of({{"version", FOVEA_VERSION}}); }

Reply endpoints::show_page(Call&, Service&) {
    return {.body = {fovea_page_begin, fovea_page_end},
            .content_type = "text/html; charset=utf-8",
            .headers = {{"Content-Security-Policy",
                         "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
                         "connect-src 'self'; img-src data:; frame-ancestors 'none'"}}};
}

}  // namespace fovea::serve
