#include "serve/api/multipart.h"

#include <algorithm>
#include <optional>

#include "host/base/ascii.h"
#include "host/base/words.h"
#include "serve/api/request.h"

namespace fovea::serve {
namespace {

constexpr std::size_t kMostBoundary = 70;  // bytes (RFC 2046, section 5.1.1)
constexpr const char* kBlanks = " \t";

bool same_word(std::string_view a, std::string_view b) { return lower(a) == lower(b); }

/// The value of name=value behind a header's first ';': a word, or a quoted text in which '\' stands before '"' and '\'.
std::optional<std::string> parameter(std::string_view header, std::string_view name) {
    for (std::size_t at = header.find(';'); at != header.npos && at < header.size();) {
        const std::size_t equals = header.find_first_of("=;", ++at);
        if (equals == header.npos) return std::nullopt;
        const bool is_it = same_word(trimmed(header.substr(at, equals - at), kBlanks), name);
        at = equals;
        if (header[equals] == ';') continue;
        std::string value;
        at = std::min(header.find_first_not_of(kBlanks, equals + 1), header.size());
        if (at < header.size() && header[at] == '"') {
            for (++at; at < header.size() && header[at] != '"'; ++at) {
                const bool escapes =
                    header[at] == '\\' && at + 1 < header.size() && (header[at + 1] == '"' || header[at + 1] == '\\');
                value += header[at += escapes ? 1 : 0];
            }
            at = header.find(';', at);
        } else {
            const std::size_t end = std::min(header.find(';', at), header.size());
            value = trimmed(header.substr(at, end - at), kBlanks);
            at = end;
        }
        if (is_it) return value;
    }
    return std::nullopt;
}

[[noreturn]] void refuse_part(const std::string& expected, const std::string& got) {
    throw RequestError(400, "body: expected " + expected + ", got " + got);
}

std::string boundary_of(std::string_view content_type) {
    const std::string_view kind = trimmed(content_type.substr(0, content_type.find(';')), kBlanks);
    if (!same_word(kind, "multipart/form-data"))
        throw RequestError(400, "Content-Type: expected multipart/form-data, got " +
                                    (kind.empty() ? "none" : std::string(kind.substr(0, 60))));
    const std::string boundary = parameter(content_type, "boundary").value_or("");
    if (boundary.empty() || boundary.size() > kMostBoundary)
        throw RequestError(400, "Content-Type: expected a boundary of 1 to " + std::to_string(kMostBoundary) +
                                    " bytes, got " + std::to_string(boundary.size()));
    return boundary;
}

/// The lines of a part's headers, of which its name is wanted.
FormPart read_headers(std::string_view lines) {
    while (!lines.empty()) {
        const std::string_view line = lines.substr(0, lines.find("\r\n"));
        lines.remove_prefix(std::min(line.size() + 2, lines.size()));
        const std::size_t colon = line.find(':');
        if (colon == line.npos || !same_word(trimmed(line.substr(0, colon), kBlanks), "content-disposition")) continue;
        FormPart part;
        const std::optional<std::string> name = parameter(line, "name");
        if (!name || name->empty()) break;
        part.name = *name;
        return part;
    }
    refuse_part("a field with a Content-Disposition that names it", "one without");
}

}  // namespace

std::vector<FormPart> read_multipart(std::string_view content_type, std::string_view body) {
    const std::string mark = "--" + boundary_of(content_type), line_mark = "\r\n" + mark;
    std::vector<FormPart> parts;
    std::size_t at = body.starts_with(mark) ? mark.size() : body.find(line_mark);
    if (at == body.npos) refuse_part("a form with its boundary", "none");
    if (!body.starts_with(mark)) at += line_mark.size();
    for (;;) {  // behind a mark
        if (body.substr(at).starts_with("--")) return parts;
        at = std::min(body.find_first_not_of(kBlanks, at), body.size());
        if (!body.substr(at).starts_with("\r\n")) refuse_part("a line's end behind a boundary", "something else");
        at += 2;
        const std::string_view ahead = body.substr(at, kMostPartHeaders + 4);
        const std::size_t n_headers = ahead.find("\r\n\r\n");
        if (n_headers == ahead.npos)
            refuse_part("headers of a field within " + std::to_string(kMostPartHeaders) + " bytes", "more, or no end");
        FormPart part = read_headers(ahead.substr(0, n_headers));
        part.begin = at + n_headers + 4;
        part.end = body.find(line_mark, part.begin);
        if (part.end == body.npos) refuse_part("a form with a boundary at its end", "none");
        at = part.end + line_mark.size();
        parts.push_back(std::move(part));
        if (parts.size() > kMostParts) refuse_part("at most " + std::to_string(kMostParts) + " fields", "more");
    }
}

}  // namespace fovea::serve
