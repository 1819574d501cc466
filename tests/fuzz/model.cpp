// Any bytes: a Status, or a model all of whose parts can be listed and whose tokenizer can be opened.
#include "fovea/model.h"

#include "fovea/tokenizer.h"
#include "host/model/listing.h"
#include "host/model/parameters.h"
#include "tests/fuzz/fovea_file.h"

FOVEA_FUZZ_TARGET(model) {
    using namespace fovea;
    const fuzz::Aligned bytes(data, size);
    Model model;
    if (!open_model(bytes, model).ok()) return 0;
    (void)verify_checksums(model);
    (void)count_parameters(model.config());
    for (const TensorInfo& tensor : tensors(model)) {
        fuzz::promise(tensor.offset <= size && tensor.bytes <= size - tensor.offset, "tensors lie in the file");
    }
    Tokenizer tokenizer;
    if (!open_tokenizer(model.tokenizer_bytes(), tokenizer).ok()) return 0;
    for (Token id = 0; id < 300; ++id) (void)token_bytes(tokenizer, id);
    return 0;
}
