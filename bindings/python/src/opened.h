// A model as Python has it: one mapping that sessions, workspaces and pools share and keep.
#pragma once
#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "bindings/python/src/errors.h"
#include "fovea/adapter.h"
#include "fovea/mapping.h"
#include "fovea/model.h"
#include "fovea/tokenizer.h"
#include "host/base/aligned_bytes.h"
#include "host/model/texts.h"

namespace fovea::python {

namespace nb = nanobind;

/// A file of an adapter that a model is opened with, and its scale.
struct ScaledPath {
    std::string path;
    float scale = 1.0f;
};
struct OpenedAdapter {
    std::string name;
    Mapping mapping;
    Model model;
    float scale = 1.0f;
};

/// A file's bytes, its model, and its tokenizer where it has one.
struct OpenedModel {
    std::string name;
    Mapping mapping;
    AlignedBytes bytes;  ///< where there is no file
    Model model;
    Tokenizer tokenizer;                  ///< not valid() where the file has none
    std::vector<OpenedAdapter> adapters;  ///< in use in every pass

    /// Every token's bytes as a tree, for forms of answers; made when it is asked for first. Needs a tokenizer; any thread.
    [[nodiscard]] std::span<const std::byte> vocabulary_index() const;
    [[nodiscard]] const Stack& first() const;  ///< the stack that reads what the caller gives
    [[nodiscard]] const Stack& last() const;   ///< and the one whose result is handed out
    [[nodiscard]] bool gives_logits() const;
    [[nodiscard]] std::vector<Token> ids_of(std::string_view text, bool add_special, bool parse_special) const;
    /// Makes room for the adapters, and puts them to use. Throws StatusError by an adapter's name.
    void plan_adapters(Limits& limits) const;
    void use_adapters(Workspace workspace) const;
    /// One number per list of adapters and scales; 0 of none.
    [[nodiscard]] std::uint32_t adapters_checksum() const;

private:
    mutable std::mutex index_mutex_;
    mutable std::vector<std::byte> index_;
};
using SharedModel = std::shared_ptr<const OpenedModel>;

/// The same as the command line's files about texts and heads have it: a view, which `opened` must outlive.
[[nodiscard]] host::Opened view_of(const OpenedModel& opened);
/// Whether `encode` gives what a head would read: of models whose head says something else than a vector.
[[nodiscard]] bool before_head(const OpenedModel& opened);
/// How wide a vector of `encode` is.
[[nodiscard]] std::uint32_t vector_width(const OpenedModel& opened);

/// Adapters are held against the model at once, for which a little memory is taken and given back.
[[nodiscard]] SharedModel open_file(const std::string& path, bool verify, const std::vector<ScaledPath>& adapters = {});
[[nodiscard]] SharedModel open_bytes(AlignedBytes bytes, const std::string& name,
                                     const std::vector<ScaledPath>& adapters = {});

/// The handle that `close` empties; whoever has the model already keeps it.
class ModelHandle {
public:
    explicit ModelHandle(SharedModel opened) : opened_(std::move(opened)) {}
    [[nodiscard]] SharedModel get() const;  ///< ValueError once closed
    void close();
    [[nodiscard]] bool closed() const;

private:
    mutable std::mutex mutex_;
    SharedModel opened_;
};

/// The UTF-8 of a str: a view that lives as long as it.
[[nodiscard]] std::string_view utf8_of(nb::handle text, const char* what);

void bind_model(nb::module_& module);

}  // namespace fovea::python
