// Opening is O(number of tensors): a large file's weights are not read.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "convert/writer/file_header.h"
#include "fovea/mapping.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

TEST_CASE("open_model and make_session of a 1 GB file touch no page of its weights") {
    Config config = llama_config(12, 2048, 16, 16, 128, 5504, 2048);
    const ModelSource source = random_model(config, 1);
    FileHead head = make_head(source, {.type = Type::f16});
    seal(head, 0);
    REQUIRE(head.weights_bytes > 1'000'000'000);

    // A sparse file: the weights are a hole, and whatever reads them brings pages of it into memory.
    char path[] = "/tmp/fovea_open_XXXXXX";
    const int file = mkstemp(path);
    REQUIRE(file >= 0);
    REQUIRE(write(file, head.bytes.data(), head.bytes.size()) == static_cast<ssize_t>(head.bytes.size()));
    REQUIRE(ftruncate(file, static_cast<off_t>(head.bytes.size() + head.weights_bytes)) == 0);
    close(file);
    {
        Mapping mapping;
        REQUIRE(map_file(path, mapping).ok());
        Model model;
        const Status status = open_model(mapping.bytes(), model);
        CAPTURE(status.what);
        REQUIRE(status.ok());
        SmallSession session(model, {.max_kv_len = 64});

        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t first = (head.bytes.size() + page - 1) / page * page;
        const std::size_t bytes = mapping.bytes().size() - first;
        std::vector<unsigned char> resident((bytes + page - 1) / page);
        REQUIRE(mincore(const_cast<std::byte*>(mapping.bytes().data() + first), bytes, resident.data()) == 0);
        std::size_t n_touched = 0;
        for (const unsigned char r : resident) n_touched += r & 1;
        CHECK(n_touched == 0);

        // The measure itself works: a token does read weights.
        std::vector<float> logits(model.config().decoder.vocab_size);
        const Token token = 1;
        REQUIRE(forward(session.session, {&token, 1}, logits).ok());
        REQUIRE(mincore(const_cast<std::byte*>(mapping.bytes().data() + first), bytes, resident.data()) == 0);
        for (const unsigned char r : resident) n_touched += r & 1;
        CHECK(n_touched > resident.size() / 2);
    }
    unlink(path);
}
