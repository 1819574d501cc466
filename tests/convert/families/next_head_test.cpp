// Next-token heads (multi-token prediction) beside tests/golden/next_heads, and as a draft for their models.
#include <doctest/doctest.h>

#include "fovea/host/generation.h"
#include "tests/convert/families/family_cases.h"
#include "tools/options/opened.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

const fs::path kHeads = fs::path(FOVEA_GOLDEN_DIR) / "next_heads";

/// A model and its head as files, and what the head makes of the model's vectors.
struct HeadFiles {
    TemporaryFolder folder;
    nlohmann::json golden;
    std::vector<Token> tokens;

    explicit HeadFiles(const std::string& name)
        : golden(nlohmann::json::parse(read_text(kHeads / name / "chain.json"))) {
        tokens = golden["tokens"].get<std::vector<Token>>();
        for (const bool mtp : {false, true}) {
            ConvertOptions options{.source = kHeads / name, .output = path(mtp), .mtp = mtp};
            convert_source(options);
        }
    }
    [[nodiscard]] fs::path path(bool mtp) const { return folder / (mtp ? "head.fovea" : "model.fovea"); }
    [[nodiscard]] host::Opened opened(bool mtp) const { return open_path(path(mtp).string()); }
};

struct Computing {
    host::Opened opened;
    host::Runtime<Session> session;

    explicit Computing(host::Opened of)
        : opened(std::move(of)), session(host::start_session(opened, {.max_batch = 7}, {})) {}

    Status compute(Step step) {
        Workspace workspace = session->workspace();
        step.cache = session->cache();
        return forward(workspace, {&step, 1});
    }
    [[nodiscard]] const Stack& stack() const { return opened.model.config().decoder; }
};

/// The model's vectors of all tokens but the last, in steps of `each`.
std::vector<float> vectors_of(Computing& model, std::span<const Token> tokens, std::size_t each) {
    const std::size_t d_model = model.stack().d_model;
    std::vector<float> vectors(tokens.size() * d_model);
    for (std::size_t at = 0; at < tokens.size(); at += each) {
        const std::size_t n = std::min(each, tokens.size() - at);
        Step step{{}, tokens.subspan(at, n), {}};
        step.vectors = std::span(vectors).subspan(at * d_model, n * d_model);
        REQUIRE(model.compute(step).ok());
    }
    return vectors;
}

std::size_t largest(std::span<const float> x) {
    return static_cast<std::size_t>(std::max_element(x.begin(), x.end()) - x.begin());
}

}  // namespace

TEST_CASE("next-token heads beside torch: logits behind each token, and of tokens that the head says itself") {
    for (const char* name : {"deepseek_v3", "glm4_moe", "qwen3_5_text"}) {
        CAPTURE(name);
        const HeadFiles files(name);
        const NpyArray want = read_npy((kHeads / name / "head_logits.npy").string());
        const std::vector<float> golden = numbers_of<float>(want);
        Computing model(files.opened(false));
        const std::span<const Token> tokens = files.tokens;
        const std::vector<float> vectors = vectors_of(model, tokens, 11);
        Computing one_by_one(files.opened(false));
        CHECK(vectors == vectors_of(one_by_one, tokens, 1));

        Computing head(files.opened(true));
        const std::size_t d_model = head.stack().d_model, vocab_size = head.stack().vocab_size, n = tokens.size() - 1;
        REQUIRE(golden.size() == n * vocab_size);
        std::vector<float> logits(golden.size()), own(d_model);
        Step step{{}, tokens.subspan(1), logits};
        step.rows = std::span(vectors).first(n * d_model);
        step.vectors = own;
        REQUIRE(head.compute(step).ok());
        float error = 0;
        for (std::size_t i = 0; i < golden.size(); ++i) error = std::max(error, std::abs(golden[i] - logits[i]));
        CHECK(error < 1e-4f);

        std::vector<float> next(logits.end() - static_cast<std::ptrdiff_t>(vocab_size), logits.end());
        for (const nlohmann::json& token : files.golden["chain"]) {
            const auto said = static_cast<Token>(largest(next));
            CHECK(said == token.get<Token>());
            Step of_own{{}, {&said, 1}, next};
            of_own.rows = of_own.vectors = own;
            REQUIRE(head.compute(of_own).ok());
        }
    }
}

TEST_CASE("a GGUF file's next-token head has the bits of the folder's") {
    for (const char* name : {"deepseek_v3", "glm4_moe", "qwen3_5_text"}) {
        CAPTURE(name);
        const HeadFiles files(name);
        const std::span<const Token> tokens = files.tokens;
        Computing model(files.opened(false));
        const std::vector<float> vectors = vectors_of(model, tokens, 11);
        std::vector<float> logits[2];
        for (const bool gguf : {false, true}) {
            ConvertOptions options{.source = kHeads / name, .output = files.folder / "f32.fovea", .mtp = true};
            if (gguf) options.source /= "model.gguf";
            options.type = Type::f32;
            convert_source(options);
            Computing head(open_path(options.output.string()));
            CHECK(head.stack().joins_rows);
            CHECK(head.stack().n_layers == 1);
            logits[gguf].resize((tokens.size() - 1) * head.stack().vocab_size);
            Step step{{}, tokens.subspan(1), logits[gguf]};
            step.rows = std::span(vectors).first((tokens.size() - 1) * head.stack().d_model);
            REQUIRE(head.compute(step).ok());
        }
        CHECK(logits[0] == logits[1]);
    }
}

TEST_CASE("a next-token head as draft: the text and logits of none, by fewer passes where it is right") {
    for (const char* name : {"deepseek_v3", "glm4_moe", "qwen3_5_text"}) {
        CAPTURE(name);
        const HeadFiles files(name);
        const host::Opened model = files.opened(false), head = files.opened(true);
        const std::span<const Token> prompt = std::span(files.tokens).first(9);
        const auto write = [&](bool drafts, std::vector<float>& logits) {
            host::Generation generation(model, {.max_kv_len = 64}, {}, {.max_proposed = 3});
            if (drafts) generation.propose_by(head, {.max_kv_len = 64}, {});
            std::vector<Token> tokens;
            host::Generated made;
            for (std::size_t turn = 0; turn < 2; ++turn) {  // the second goes on with the first one's text
                std::vector<Token> text(prompt.begin(), prompt.end());
                if (turn) text.insert(text.end(), tokens.begin(), tokens.end()), text.push_back(2);
                made = generation.generate_until(
                    host::Prompt(text), {.n_new = 20, .speculation = {.n_proposed = drafts ? 3u : 0u, .always = true}},
                    [&](const Piece& piece) {
                        tokens.insert(tokens.end(), piece.tokens.begin(), piece.tokens.end());
                        logits.insert(logits.end(), piece.logits.begin(), piece.logits.end());
                        return true;
                    });
            }
            CHECK((made.figures.n_proposed > 0) == drafts);
            CHECK((made.figures.n_draft_passes > 0) == drafts);
            return tokens;
        };
        std::vector<float> plain, drafted;
        CHECK(write(false, plain) == write(true, drafted));
        CHECK(plain == drafted);
    }
}

TEST_CASE("a next-token head proposes what torch's says of the same text, and a text that goes on so takes all") {
    for (const char* name : {"deepseek_v3", "glm4_moe", "qwen3_5_text"}) {
        CAPTURE(name);
        const HeadFiles files(name);
        Computing model(files.opened(false)), head(files.opened(true));
        const std::span<const Token> prompt = std::span(files.tokens).first(files.tokens.size() - 1);
        std::vector<Token> text = files.tokens;
        for (const nlohmann::json& token : files.golden["chain"]) text.push_back(token.get<Token>());
        host::Runtime<Generator> generator =
            host::start_generator(model.opened, model.session->cache(), {.max_tokens = 64, .max_proposed = 3});
        std::vector<float> vectors(std::size_t{48} * head.stack().d_model);
        GenerateOptions options{.n_new = 5};
        options.speculation = {.n_proposed = 3, .draft = {head.session->workspace(), head.session->cache(), vectors}};
        options.speculation.always = true;
        options.filter.context = &text;
        options.filter.allow = [](void* context, std::span<const Token> before, std::span<std::uint32_t> mask) {
            const Token next = (*static_cast<const std::vector<Token>*>(context))[before.size()];
            std::fill(mask.begin(), mask.end(), 0u);
            mask[next / 32] |= 1u << next % 32;
        };
        REQUIRE(start(*generator, prompt, options).ok());
        Workspace workspace = model.session->workspace();
        Piece piece;
        REQUIRE(generate(*generator, workspace, piece).ok());
        Step step;
        REQUIRE(next_step(*generator, step).ok());
        CHECK(std::vector(step.tokens.begin(), step.tokens.end()) == std::vector(text.end() - 5, text.end() - 1));
        REQUIRE(forward(workspace, {&step, 1}).ok());
        REQUIRE(take(*generator, piece).ok());
        CHECK(piece.tokens.size() == 4);
        CHECK(generator->figures().n_accepted == 3);
        CHECK(generator->figures().n_draft_passes == 3);
    }
}

TEST_CASE(
    "a next-token head's vectors: little room for them, threads, and a prompt that begins otherwise, change no bit") {
    const HeadFiles files("qwen3_5_text");
    const host::Opened model = files.opened(false), head = files.opened(true);
    const std::size_t d_model = head.model.config().decoder.d_model;
    const auto write = [&](std::size_t n_rows, std::uint32_t n_threads, std::uint32_t& n_accepted) {
        host::Runtime<Session> session = host::start_session(model, {.max_batch = 5, .n_threads = n_threads}, {}),
                               draft = host::start_session(head, {.max_batch = 3, .n_threads = n_threads}, {});
        host::Runtime<Generator> generator =
            host::start_generator(model, session->cache(), {.max_tokens = 64, .max_proposed = 3});
        std::vector<float> vectors(n_rows * d_model);
        Speculation speculation{.n_proposed = n_rows ? 3u : 0u, .always = true};
        if (n_rows) speculation.draft = {draft->workspace(), draft->cache(), vectors};
        std::vector<float> logits;
        Workspace workspace = session->workspace();
        for (const std::size_t n_prompt : {12u, 30u, 7u, 9u}) {
            REQUIRE(start(*generator, std::span(files.tokens).last(40 - n_prompt / 20).first(n_prompt),
                          {.n_new = 25, .speculation = speculation})
                        .ok());
            for (Piece piece; piece.finish == FinishReason::none;) {
                REQUIRE(generate(*generator, workspace, piece).ok());
                logits.insert(logits.end(), piece.logits.begin(), piece.logits.end());
            }
            n_accepted += generator->figures().n_accepted;
        }
        return logits;
    };
    std::uint32_t none = 0, few = 0, many = 0, other = 0;
    const std::vector<float> want = write(0, 1, none);
    CHECK(want == write(5, 1, few));
    CHECK(want == write(64, 1, many));
    CHECK(want == write(64, 2, other));
    CHECK(none == 0);
    CHECK(other == many);  // the same proposals with any threads
}

TEST_CASE("next-token heads: what a call, a draft and a file are refused for") {
    const HeadFiles files("glm4_moe"), wider("deepseek_v3");
    Computing model(files.opened(false)), head(files.opened(true));
    const std::size_t d_model = head.stack().d_model;
    const std::span<const Token> tokens = std::span(files.tokens).first(3);
    std::vector<float> rows(4 * d_model);
    const auto refused = [](Computing& by, Step step) {
        const Status status = by.compute(step);
        CHECK(by.session->kv_len() == 0);
        return std::string(StatusLine(status).c_str());
    };
    CHECK(contains(refused(head, {{}, tokens, {}}),
                   "elements of rows, one row for each token of a next-token head: expected 36, got 0"));
    Step step{{}, tokens, {}};
    step.rows = rows;
    CHECK(contains(refused(head, step), "expected 36, got 48"));
    CHECK(contains(refused(model, step), "expected tokens or rows, got both"));
    step.rows = {};
    step.vectors = rows;
    CHECK(contains(refused(model, step), "elements of vectors: expected at most 36, got 48"));
    step.vectors = std::span(rows).first(5);
    CHECK(contains(refused(model, step), "elements of vectors as a multiple of: expected 12, got 5"));

    host::Runtime<Generator> generator =
        host::start_generator(model.opened, model.session->cache(), {.max_tokens = 64, .max_proposed = 3});
    Speculation speculation{.n_proposed = 3, .draft = {head.session->workspace(), head.session->cache(), rows}};
    const Status little = start(*generator, tokens, {.speculation = speculation});
    CHECK(little.code == Code::bad_shape);
    CHECK(contains(StatusLine(little).c_str(), "elements of a draft's vectors: expected at least 60, got 48"));
    rows.resize(5 * d_model);
    speculation.draft.vectors = rows;
    CHECK(start(*generator, tokens, {.speculation = speculation}).ok());

    Plan plan;  // the size is exact
    REQUIRE(make_plan(head.opened.model.config(), {}, plan).ok());
    AlignedBytes arena(plan.arena_bytes);
    Session session;
    CHECK(make_session(head.opened.model, {}, std::span(arena).first(plan.arena_bytes), session).ok());
    CHECK(make_session(head.opened.model, {}, std::span(arena).first(plan.arena_bytes - 1), session).code ==
          Code::arena_too_small);

    Config config = head.opened.model.config();
    for (const auto& change : std::initializer_list<std::function<void(Stack&)>>{
             [](Stack& s) { s.embedding_norm = Norm::none; }, [](Stack& s) { s.embedding_width = 8; },
             [](Stack& s) { s.has_output_head = s.tied_output = false; }, [](Stack& s) { s.n_token_types = 2; },
             [](Stack& s) { s.position = Position::learned; }}) {
        Config changed = config;
        change(changed.decoder);
        CHECK(contains(StatusLine(check(changed)).c_str(), "a head that joins rows with what it cannot have"));
    }

    const auto line_of_mtp = [&](const fs::path& source) {
        return refusal_of([&] { convert_source({.source = source, .output = files.folder / "x.fovea", .mtp = true}); });
    };
    CHECK(contains(line_of_mtp(golden_families() / "llama"),
                   "--mtp: expected a next-token head (mtp.fc or layers.2.eh_proj), got none"));
    const fs::path mimo = files.folder / "mimo";
    fs::copy(golden_families() / "mimo_v2_flash", mimo);
    SafetensorsText weights = SafetensorsText::read(mimo / "model.safetensors");
    weights.header["model.mtp.layers.0.eh_proj.weight"] = weights.header["model.norm.weight"];
    weights.header.erase("model.norm.weight");
    write_text(mimo / "model.safetensors", weights.text());
    CHECK(contains(line_of_mtp(mimo),
                   "--mtp: expected a next-token head (mtp.fc or layers.2.eh_proj), got one of another kind "
                   "(model.mtp.layers.0.eh_proj.weight)"));
    CHECK(contains(line_of_mtp(files.path(false)),
                   "--mtp: expected a Hugging Face source or a GGUF file, got another kind"));
    CHECK(contains(line_of_mtp(fs::path(FOVEA_GOLDEN_DIR) / "families_gguf/glm4_moe/model.gguf"),
                   "--mtp: expected a next-token head (blk.2.nextn.eh_proj), got none"));
    CHECK(contains(line_of_mtp(fs::path(FOVEA_GOLDEN_DIR) / "encoders_gguf/modernbert/model.gguf"),
                   "--mtp: expected a decoder with logits, got another model"));
}
