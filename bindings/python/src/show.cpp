// The page of `--picture`.
#include <nanobind/ndarray.h>

#include "bindings/python/src/arrays.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/module.h"
#include "host/show/picture.h"

namespace fovea::python {
namespace {

std::vector<std::string> labels_of(const nb::list& labels) {
    std::vector<std::string> all;
    for (nb::handle label : labels) {
        const auto bytes = nb::cast<nb::bytes>(label);
        all.emplace_back(bytes.c_str(), bytes.size());
    }
    return all;
}

/// Patterns as tuples of a title, weights [head, query, key], and the bytes of each query and key.
nb::str draw_page(const nb::list& objects, std::size_t first, const std::string& name) {
    std::vector<AttentionPattern> patterns;
    for (nb::handle object : objects) {
        const auto parts = nb::cast<nb::tuple>(object);
        const Floats weights = read_packed(parts[1], "weights", 3);
        AttentionPattern pattern{.title = nb::cast<std::string>(parts[0]), .n_heads = weights.shape[0]};
        pattern.weights.assign(weights.span().begin(), weights.span().end());
        pattern.queries = labels_of(nb::cast<nb::list>(parts[2]));
        pattern.keys = labels_of(nb::cast<nb::list>(parts[3]));
        if (pattern.queries.size() != weights.shape[1] || pattern.keys.size() != weights.shape[2])
            refuse_value("labels", "one for each query and key", "others");
        patterns.push_back(std::move(pattern));
    }
    if (first >= patterns.size()) refuse_value("first", "the number of a pattern", "another");
    const std::string page = draw_html(patterns, first, name);
    return nb::str(page.data(), page.size());
}

}  // namespace

void bind_show(nb::module_& module) {
    module.def("draw_page", draw_page, nb::arg("patterns"), nb::arg("first") = 0, nb::arg("name") = "");
}

}  // namespace fovea::python
