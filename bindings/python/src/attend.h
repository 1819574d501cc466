// One attention as Python has it.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "bindings/python/src/arrays.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/interrupt.h"
#include "bindings/python/src/opened.h"
#include "fovea/encode.h"
#include "fovea/host/runtime.h"

namespace fovea::python {

class PyAttention {
public:
    /// Without a model heads are attended to as they are.
    PyAttention(const ModelHandle* model, std::uint32_t n_threads, const std::string& isa);
    PyAttention(const PyAttention&) = delete;
    PyAttention& operator=(const PyAttention&) = delete;

    /// `given`: out, causal and, where there are such, mask, key_padding_mask, kv_lengths, past_key, past_value, scale,
    /// softcap, weights and per_head.
    void attend(nb::handle query, nb::handle key, nb::handle value, const nb::dict& given);
    void cancel() noexcept { gate_.cancel(); }

private:
    struct Job;
    /// The arguments by their names, where they are given.
    struct Given {
        explicit Given(const nb::dict& named);
        nb::handle out, causal, mask, key_padding_mask, weights, per_head, scale, softcap, past_key, past_value,
            kv_lengths;
    };
    [[nodiscard]] AttentionShape read_heads(const Given& given, Job& job);
    void read_rows(const Given& given, Job& job);
    void prepare(const Job& job, const AttentionShape& heads);

    SharedModel opened_;
    host::Opened heads_;  // the model, or one of the heads that a call asks for
    AttentionShape shape_;
    std::string isa_;
    std::uint32_t n_threads_;
    host::Runtime<Session> session_;
    PassGate gate_;
};

void bind_attend(nb::module_& module);

}  // namespace fovea::python
