// Whether a model's output head is its table of embeddings: the configuration says so, its files may know better.
#pragma once
#include <string>

#include "convert/formats/safetensors.h"
#include "convert/sources/hf_config.h"

namespace fovea {

/// Whether two tensors are plain ones of the same type, shape and numbers.
[[nodiscard]] bool are_equal(const SourceTensor& a, const SourceTensor& b);

/// What is said of a head that is not.
[[nodiscard]] std::string note_of_own_head(const std::string& head);

/// Settles what a configuration that ties both says, by the tensors of those names; `head` is empty where the family names none.
///   An adapter changes the table or the head alone: the other is the table without it, as in PEFT.
///   A head beside the table has other numbers: it is the head, with a note, as in transformers 5.
///   There is a head and no table: it is both.
/// An encoder's head that has a bias of its own, `head` with .bias, takes that one.
void settle_tied_output(const std::string& table, const std::string& head, HfConfig& config, Safetensors& weights);

}  // namespace fovea
