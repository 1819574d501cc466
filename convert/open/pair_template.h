// The text that a reranker reads of a query and a document.
#pragma once
#include <string>

#include "convert/sources/hf_texts.h"
#include "convert/weights/model_source.h"

namespace fovea {

/// The form of Qwen3-Reranker (Qwen Team 2025), with the texts' places as the metadata's pair_template has them.
extern const std::string kQwenRerankerPair;

/// Adds what the source's chat template makes of messages of the roles query and document, as sentence-transformers asks it, behind
/// one of the role system with the prompt that is used unasked. Throws host::Error where it does not show both.
void add_pair_template(const TextSettings::Messages& messages, ModelSource& source);

}  // namespace fovea
