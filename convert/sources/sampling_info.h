// What a source says of how its texts' tokens are chosen.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "convert/weights/model_source.h"
#include "host/base/source_file.h"

namespace fovea {

class Gguf;

/// Adds to the source's info, where a folder says more than the likeliest token: sampling, a JSON object of sampler options
/// (host/model/sampling_options.h). generation_config.json, or config.json where there is none, is read as transformers'
/// `generate` reads it: without do_sample only repetition_penalty counts, with it top_k is 50 unless it is named. A member that
/// changes what is chosen and is not heeded becomes a note. Throws host::Error for a value out of its range.
void add_sampling_info(const Fields& config, const std::filesystem::path& generation, ModelSource& source);
/// The same of a GGUF file's keys general.sampling.*.
void add_sampling_info(const Gguf& file, ModelSource& source);

/// A note for each member by which transformers' `generate` writes other texts than Fovea: "FILE: MEMBER: chats don't heed it".
/// `who`: chats or transcripts.
void note_unheeded(const Fields& said, const std::string& who, std::vector<std::string>& notes);

}  // namespace fovea
