// A model as Python has it: one mapping that sessions, workspaces and pools share and keep.
#pragma once
#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/src/errors.h"
#include "fovea/adapter.h"
#include "fovea/host/arena.h"
#include "fovea/host/opened.h"
#include "fovea/mapping.h"
#include "fovea/model.h"
#include "fovea/tokenizer.h"
#include "host/base/aligned_bytes.h"
#include "host/model/texts.h"

namespace fovea::python {

namespace nb = nanobind;

/// Files of adapters that a model is opened with, and their scales.
using ScaledPaths = std::vector<std::pair<std::string, float>>;

/// An opened model, with what Python's calls share of it.
struct OpenedModel : host::Opened {
    AlignedBytes bytes;  ///< where there is no file

    /// Every token's bytes as a tree, for forms of answers; made when it is asked for first. Needs a tokenizer; any thread.
    [[nodiscard]] std::span<const std::byte> vocabulary_index() const;
    /// ValueError for a text of more bytes than one may have.
    static void check_length(std::string_view text);
    /// A text's ids, after that check.
    [[nodiscard]] std::vector<Token> ids_of(std::string_view text, bool add_special, bool parse_special) const;

private:
    mutable std::mutex index_mutex_;
    mutable std::vector<std::byte> index_;
};
using SharedModel = std::shared_ptr<const OpenedModel>;

/// Adapters are held against the model at once, for which a little memory is taken and given back.
[[nodiscard]] SharedModel open_file(const std::string& path, bool verify, const ScaledPaths& adapters = {});
[[nodiscard]] SharedModel open_bytes(AlignedBytes bytes, const std::string& name, const ScaledPaths& adapters = {});

/// The handle that `close` empties; whoever has the model already keeps it.
class ModelHandle {
public:
    explicit ModelHandle(SharedModel opened) : opened_(std::move(opened)) {}
    [[nodiscard]] SharedModel get() const {  ///< ValueError once closed
        const std::lock_guard lock(mutex_);
        if (!opened_) refuse_value("model", "an open one", "one that was closed");
        return opened_;
    }
    void close() {
        const std::lock_guard lock(mutex_);
        opened_.reset();
    }
    [[nodiscard]] bool closed() const {
        const std::lock_guard lock(mutex_);
        return !opened_;
    }

private:
    mutable std::mutex mutex_;
    SharedModel opened_;
};

/// The UTF-8 of a str: a view that lives as long as it.
[[nodiscard]] std::string_view utf8_of(nb::handle text, const char* what);

void bind_model(nb::module_& module);

}  // namespace fovea::python
