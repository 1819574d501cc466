// Conversion: of files and folders, of arrays that the caller has, and into the cache folder.
#include "convert/open/convert.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include "bindings/python/src/arrays.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/interrupt.h"
#include "bindings/python/src/module.h"
#include "bindings/python/src/opened.h"
#include "bindings/python/src/session.h"
#include "convert/open/cached.h"
#include "convert/open/hub_cache.h"

namespace fovea::python {
namespace {

/// Ends a conversion where a signal's handler raises: what is unfinished is removed on the way.
struct Interrupted {};

ConvertOptions options_of(const nb::dict& named) {
    ConvertOptions options;
    options.n_threads = default_threads();
    const auto text = [&](const char* name) {
        return named.contains(name) && !named[name].is_none() ? std::string(utf8_of(named[name], name)) : std::string();
    };
    options.source = text("source");
    options.output = text("output");
    options.tokenizer = text("tokenizer");
    options.config = text("config");
    options.base = text("base");
    if (const std::string type = text("type"); !type.empty()) options.type = type_named(type, "type");
    if (named.contains("n_threads")) options.n_threads = std::max(nb::cast<std::uint32_t>(named["n_threads"]), 1u);
    options.progress = [](std::uint64_t, std::uint64_t) {
        const WithGil acquired;
        if (PyErr_CheckSignals() != 0) throw Interrupted{};
    };
    return options;
}

template<class Work>
auto interruptible(Work&& work) {
    try {
        const WithoutGil released;
        return work();
    } catch (const Interrupted&) {
        throw nb::python_error();
    }
}

/// Where the Fovea file of a source is, and whether it was made now.
nb::tuple cached(const nb::dict& named) {
    ConvertOptions options = options_of(named);
    bool made = false;
    const std::string path = interruptible(
        [&] { return cached_file(std::move(options), [&](const std::filesystem::path&) { made = true; }).string(); });
    return nb::make_tuple(path, made);
}

/// A source to its output; gives the notes.
std::vector<std::string> convert_file(const nb::dict& named) {
    const ConvertOptions options = options_of(named);
    std::vector<std::string> notes;
    interruptible([&] {
        const ModelSource source = read_source(options);
        notes = source.notes;
        write_file(source, options.output, write_options(options, source));
        return 0;
    });
    return notes;
}

/// name, dtype as safetensors spells it, shape, and the bytes as an array of uint8 that has them all.
Safetensors arrays_of(const nb::list& arrays, std::vector<nb::ndarray<nb::ro>>& held) {
    Safetensors weights;
    weights.files.emplace_back("arrays");
    for (nb::handle object : arrays) {
        const auto entry = nb::cast<nb::tuple>(object);
        SourceTensor tensor;
        tensor.dtype = nb::cast<std::string>(entry[1]);
        tensor.shape = nb::cast<std::vector<std::uint64_t>>(entry[2]);
        const auto name = nb::cast<std::string>(entry[0]);
        const auto bytes = nb::cast<nb::ndarray<nb::ro>>(entry[3]);
        std::uint64_t wanted = tensor.dtype == "F32" ? 4 : 2;
        for (const std::uint64_t n : tensor.shape) wanted *= n;
        if (bytes.dtype().bits != 8 || bytes.ndim() != 1 || bytes.size() != wanted ||
            (bytes.size() > 1 && bytes.stride(0) != 1) ||
            (tensor.dtype != "F32" && tensor.dtype != "F16" && tensor.dtype != "BF16"))
            refuse_value("tensor " + name, std::to_string(wanted) + " packed bytes of F32, F16 or BF16", "others");
        tensor.data = static_cast<const std::byte*>(bytes.data());
        tensor.bytes = wanted;
        held.push_back(bytes);
        weights.tensors[name] = std::move(tensor);
    }
    return weights;
}

/// A folder's config.json with arrays for weights; gives the model, or None where there is an output, and the notes.
nb::tuple convert_arrays(const nb::dict& named, const nb::list& arrays) {
    const ConvertOptions options = options_of(named);
    std::vector<nb::ndarray<nb::ro>> held;
    Safetensors weights = arrays_of(arrays, held);
    std::vector<std::string> notes;
    SharedModel opened;
    interruptible([&] {
        const ModelSource source = read_source(options, std::move(weights));
        notes = source.notes;
        const WriteOptions write = write_options(options, source);
        if (options.output.empty())
            opened = open_bytes(write_bytes(source, write), "arrays");
        else
            write_file(source, options.output, write);
        return 0;
    });
    nb::object model = nb::none();
    if (opened) model = nb::cast(new ModelHandle(std::move(opened)), nb::rv_policy::take_ownership);
    return nb::make_tuple(model, notes);
}

}  // namespace

void bind_convert(nb::module_& module) {
    module.def("cached", cached, nb::arg("options"));
    module.def(
        "is_source", [](const std::string& path) { return is_source(path); }, nb::arg("path"));
    module.def(
        "find_source", [](const std::string& path) { return find_source(path).string(); }, nb::arg("path"));
    module.def("convert_file", convert_file, nb::arg("options"));
    module.def("convert_arrays", convert_arrays, nb::arg("options"), nb::arg("arrays"));
}

}  // namespace fovea::python
