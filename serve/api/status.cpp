// GET /health, /metrics, /version, /api/version and the page at "/" with its files: what the server says of itself.
#include "fovea/version.h"
#include "serve/api/endpoint.h"

extern "C" {
// page.S
#define FOVEA_PAGE_FILE(symbol, name, type) extern const char fovea_##symbol##_begin[], fovea_##symbol##_end[];
#include "serve/api/page_files.inc"
#undef FOVEA_PAGE_FILE
}

namespace fovea::serve {
namespace {

struct PageFile {
    std::string_view name, type;
    const char *begin, *end;
};

constexpr PageFile kPageFiles[] = {
#define FOVEA_PAGE_FILE(symbol, name, type) {name, type, fovea_##symbol##_begin, fovea_##symbol##_end},
#include "serve/api/page_files.inc"
#undef FOVEA_PAGE_FILE
};

/// A page may load its own files and ask its own server, nothing else; and no text becomes elements or script.
Reply reply_with(const PageFile& file) {
    return {
        .body = {file.begin, file.end},
        .content_type = std::string(file.type),
        .headers = {{"Content-Security-Policy",
                     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
                     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"},
                    {"Cache-Control", "no-cache"},
                    {"X-Content-Type-Options", "nosniff"},
                    {"Referrer-Policy", "no-referrer"}}};
}

}  // namespace

Reply endpoints::tell_health(Call& call, Service&) {
    Reply reply = reply_of({{"status", call.stopping ? "stopping" : "ok"}});
    if (call.stopping) reply.status = 503;
    return reply;
}

Reply endpoints::tell_metrics(Call&, Service& service) {
    return {.body = service.metrics.text(), .content_type = "text/plain; version=0.0.4"};
}

Reply endpoints::tell_version(Call&, Service&) { return reply_of({{"version", FOVEA_VERSION}}); }

/// Clients compare it with the version whose features they need: this one has the forms that are answered here.
Reply endpoints::ollama_version(Call&, Service&) {
    return reply_of({{"version", "0.12.6"}, {"fovea_version", FOVEA_VERSION}});
}

Reply endpoints::show_page(Call&, Service&) { return reply_with(kPageFiles[0]); }

Reply endpoints::show_page_file(Call& call, Service&) {
    for (const PageFile& file : kPageFiles)
        if (call.path.substr(std::string_view("/page/").size()) == file.name) return reply_with(file);
    throw RequestError(404, "path: expected a file of the page, got another");
}

}  // namespace fovea::serve
