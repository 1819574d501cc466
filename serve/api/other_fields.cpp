#include "serve/api/other_fields.h"

#include <algorithm>
#include <string_view>

#include "host/base/nearest.h"
#include "serve/api/text_fields.h"

namespace fovea::serve {
namespace {

/// What other servers obey in some request that is for no text, and the value of it that changes nothing.
struct Refused {
    const char* name;
    Json neutral;
};

const std::vector<Refused>& refused_fields() {
    static const std::vector<Refused> fields = {
        // vLLM's and llama.cpp's
        {"truncate_prompt_tokens", -1},
        {"add_special_tokens", true},
        {"hotwords", ""},
        {"vad_filter", false},
        {"to_language", ""},
        {"normalize", true},
        {"use_activation", true},
        {"activation", true},
        {"softmax", true},
        {"embd_normalize", 2},
        {"encoding_format", "float"},
        {"embed_dtype", "float32"},
        {"endianness", "native"},
        {"instruction", ""},
        // text-embeddings-inference's
        {"truncation_direction", "Right"},
        {"raw_scores", false},
        {"return_text", false},
        {"truncate", true},
        {"prompt_name", ""},
        // Cohere's, Jina's, Voyage's and NVIDIA's
        {"max_tokens_per_doc", 4096},
        {"max_chunks_per_doc", Json()},
        {"rank_fields", Json()},
        {"return_documents", false},
        {"overlap_tokens", Json()},
        {"input_type", ""},
        {"task", ""},
        {"late_chunking", false},
        {"embedding_type", "float"},
        {"embedding_types", Json::array({"float"})},
        {"output_dimension", Json()},
        {"output_dtype", "float"},
        {"dimensions", Json()},
    };
    return fields;
}

/// The row of requests for texts of this name; null: there is none.
const FieldRow<Request>* text_field(std::string_view name) {
    const auto found = std::ranges::find(text_fields(), name, &FieldRow<Request>::name);
    return found == text_fields().end() ? nullptr : &*found;
}

}  // namespace

std::string check_fields(const Fields& fields, std::initializer_list<const char*> read) {
    const std::vector<std::string> names(read.begin(), read.end());
    std::string ignored;
    for (const auto& [name, value] : fields.object().items()) {
        if (value.is_null() || std::ranges::find(names, name) != names.end()) continue;
        const auto refused = std::ranges::find(refused_fields(), name, &Refused::name);
        if (refused != refused_fields().end()) {
            fields.only(refused->name, refused->neutral);
            continue;
        }
        const FieldRow<Request>* const row = text_field(name);
        if (!row)
            add_unknown(fields, name, names, ignored);
        else if (!std::holds_alternative<FieldRow<Request>::Ignored>(row->to))
            fields.only(row->name, Json());
    }
    return ignored;
}

Fields fields_of(Call& call, std::initializer_list<const char*> read) {
    Fields fields(call.json);
    call.ignored = check_fields(fields, read);
    return fields;
}

}  // namespace fovea::serve
