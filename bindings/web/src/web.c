// One model in the memory of one WebAssembly module, as functions of numbers: what JavaScript calls (see ../wasm.mjs). The
// memory above the module's own is taken from below, and given back from above. A function that can fail returns 1 if it
// did; `error_line` then says why.
#include <string.h>

#include "bindings/web/src/options.h"
#include "fovea/fovea.h"

#define EXPORT(name) __attribute__((export_name(#name))) name
enum { kAlign = 64, kPage = 65536, kErrorBytes = 256 };

static char error_text[kErrorBytes];
static _Alignas(kAlign) unsigned char model_memory[FOVEA_MODEL_BYTES];
static _Alignas(8) unsigned char form_memory[FOVEA_CONSTRAINT_BYTES];

static struct fovea_model* model;
static fovea_info info;
static fovea_limits limits;
static fovea_session* session;      // of a model that gives logits
static fovea_generator* generator;  // of such a model
static fovea_workspace* workspace;  // the session's, or that of an encoder
static fovea_step step;             // of the text under way; tokens are the rest of them
static int step_begun;
static uint64_t n_arena_bytes;  // of the arenas, all together
static fovea_piece piece;
static fovea_sampler sampler;
static fovea_more_samplers more;
static fovea_constraint* form;
static fovea_constraint_state* form_state;

static int failed(fovea_status status) {
    if (status.code == FOVEA_OK) return 0;
    fovea_describe(status, error_text, sizeof error_text);
    return 1;
}
static int refuse(const char* line) {
    strncpy(error_text, line, sizeof error_text - 1);
    return 1;
}
const char* EXPORT(error_line)(void) { return error_text; }

// ---- memory --------------------------------------------------------------------------------------------------------

extern unsigned char __heap_base[];
static uintptr_t top;

uintptr_t EXPORT(memory_top)(void) { return top; }
void EXPORT(release_memory)(uintptr_t to) { top = to; }

/// So many bytes, 64-byte aligned; NULL if the machine has no more.
static void* room_for(uint64_t n_bytes) {
    const uint64_t begin = (top + kAlign - 1) / kAlign * kAlign, end = begin + n_bytes;
    if (n_bytes > UINT32_MAX || end > UINT32_MAX - kPage) return NULL;
    const size_t pages = (size_t)((end + kPage - 1) / kPage), have = __builtin_wasm_memory_size(0);
    if (pages > have && __builtin_wasm_memory_grow(0, pages - have) == SIZE_MAX) return NULL;
    top = (uintptr_t)end;
    return (void*)(uintptr_t)begin;
}
void* EXPORT(take_memory)(double n_bytes) { return room_for((uint64_t)n_bytes); }
static int take(uint64_t n_bytes, void** at) {
    *at = room_for(n_bytes);
    return *at ? 0 : refuse("memory: expected room for the model and its arena in 4 GiB, got less");
}

// ---- a model -------------------------------------------------------------------------------------------------------

/// Forgets the model, if there is one, and all memory that was taken.
void EXPORT(forget_model)(void) {
    top = (uintptr_t)__heap_base;
    model = NULL;
    session = NULL;
    generator = NULL;
    workspace = NULL;
    form = NULL;
    form_state = NULL;
    step_begun = 0;
}

int EXPORT(open_model)(const void* file, size_t n_bytes, int verify) {
    info = (fovea_info){.struct_size = sizeof info};
    return failed(
               fovea_open_model(file, n_bytes, verify ? FOVEA_VERIFY : 0, model_memory, sizeof model_memory, &model)) ||
           failed(fovea_model_info(model, &info));
}

/// The model's facts, by their place in `#readFacts` of ../wasm.mjs.
double EXPORT(fact)(int i) {
    const double facts[] = {info.kind,         info.fingerprint,         info.n_layers,
                            info.d_model,      info.vocab_size,          info.max_positions,
                            info.n_heads,      info.n_kv_heads,          info.head_dim,
                            info.pools,        info.has_tokenizer,       (double)info.file_bytes,
                            info.result_width, fovea_numerics_version(), info.bos};
    return i >= 0 && (size_t)i < sizeof facts / sizeof facts[0] ? facts[i] : -1;
}
static fovea_text text_fact(int i) {
    const fovea_text texts[] = {info.name, info.architecture, info.prompt_suffix, info.chat_template};
    return texts[i & 3];
}
const char* EXPORT(text_fact_at)(int i) { return text_fact(i).bytes; }
size_t EXPORT(text_fact_bytes)(int i) { return text_fact(i).n_bytes; }
const char* EXPORT(isa)(void) { return fovea_isa(workspace); }
const char* EXPORT(version)(void) { return fovea_version(); }

/// Takes the arena of all that the model does. Zeros are the engine's own choices; max_text_bytes is not 0.
int EXPORT(make_runtime)(uint32_t max_positions, uint32_t max_batch, uint32_t kv_type, const char* isa_name) {
    limits = (fovea_limits){.struct_size = sizeof limits,
                            .max_positions = max_positions,
                            .max_batch = max_batch,
                            .kv_type = kv_type,
                            .isa = isa_name};
    fovea_plan plan = {.struct_size = sizeof plan};
    void* arena;
    if (info.kind != FOVEA_LOGITS) {
        if (failed(fovea_plan_workspace(model, &limits, &plan)) || take(plan.arena_bytes, &arena)) return 1;
        n_arena_bytes = plan.arena_bytes;
        return failed(fovea_make_workspace(model, &limits, arena, (size_t)plan.arena_bytes, &workspace));
    }
    if (failed(fovea_plan_session(model, &limits, &plan)) || take(plan.arena_bytes, &arena) ||
        failed(fovea_make_session_of(model, &limits, arena, (size_t)plan.arena_bytes, &session)))
        return 1;
    workspace = fovea_session_workspace(session);
    limits.max_positions = plan.max_positions;
    limits.max_batch = plan.max_batch;
    const fovea_generator_limits texts = {.struct_size = sizeof texts, .max_tokens = plan.max_positions};
    fovea_generator_plan texts_plan = {.struct_size = sizeof texts_plan};
    const fovea_cache cache = fovea_session_cache(session);
    if (failed(fovea_plan_generator(model, &texts, &texts_plan)) || take(texts_plan.arena_bytes, &arena)) return 1;
    n_arena_bytes = plan.arena_bytes + texts_plan.arena_bytes;
    return failed(fovea_make_generator(model, &cache, &texts, arena, (size_t)texts_plan.arena_bytes, &generator));
}
uint32_t EXPORT(max_positions)(void) { return limits.max_positions; }
uint32_t EXPORT(max_batch)(void) { return limits.max_batch; }
double EXPORT(arena_bytes)(void) { return (double)n_arena_bytes; }

// ---- text ----------------------------------------------------------------------------------------------------------

double EXPORT(most_tokens)(size_t text_bytes) { return (double)fovea_max_tokens(model, text_bytes); }
double EXPORT(scratch_bytes)(size_t text_bytes) { return (double)fovea_scratch_bytes(model, text_bytes); }

/// The number of tokens; SIZE_MAX if it failed.
size_t EXPORT(tokenize)(const char* text, size_t n_bytes, int how, void* scratch, size_t n_scratch, uint32_t* tokens,
                        size_t capacity) {
    size_t n = 0;
    return failed(fovea_model_tokenize(model, text, n_bytes, how, scratch, n_scratch, tokens, capacity, &n)) ? SIZE_MAX
                                                                                                             : n;
}
uint32_t EXPORT(token_flags)(uint32_t token) { return fovea_token_flags(model, token); }
const char* EXPORT(token_text)(uint32_t token) { return fovea_token_bytes(model, token).bytes; }
size_t EXPORT(token_text_bytes)(uint32_t token) { return fovea_token_bytes(model, token).n_bytes; }
size_t EXPORT(most_piece_bytes)(void) { return (size_t)info.max_piece_bytes; }
size_t EXPORT(decode)(fovea_decoder* decoder, uint32_t token, char* out, size_t capacity) {
    return fovea_model_decode(model, decoder, token, out, capacity);
}

// ---- making text ---------------------------------------------------------------------------------------------------

void EXPORT(clear_options)(void) {
    more = (fovea_more_samplers){0};
    sampler = (fovea_sampler){.struct_size = sizeof sampler, .more = &more};
    form = NULL;
    form_state = NULL;
}

/// A sampler's option by its name; 1 if there is none of that name.
int EXPORT(set_option)(const char* name, double value) { return set_sampler_option(&sampler, &more, name, value); }

/// A form that `fovea grammar` wrote, which stays where it is until the text has ended.
int EXPORT(set_form)(const void* bytes, size_t n_bytes) {
    void* at;
    if (failed(fovea_open_constraint(model, bytes, n_bytes, NULL, 0, form_memory, sizeof form_memory, &form))) return 1;
    const uint64_t n = fovea_constraint_state_bytes(form);
    return take(n, &at) || failed(fovea_make_constraint_state(form, at, (size_t)n, &form_state));
}

int EXPORT(start_text)(const uint32_t* tokens, size_t n_tokens, uint32_t n_new, const fovea_text* stop, size_t n_stop,
                       int show_special) {
    fovea_token_filter filter = {.struct_size = sizeof filter};
    if (form_state && failed(fovea_constraint_filter(form_state, &filter))) return 1;
    const fovea_generate_options options = {.struct_size = sizeof options,
                                            .n_new = n_new,
                                            .sampler = &sampler,
                                            .filter = form_state ? &filter : NULL,
                                            .stop = stop,
                                            .n_stop = n_stop,
                                            .show_special = show_special ? 1 : 0};
    step_begun = 0;
    return failed(fovea_start(generator, tokens, n_tokens, &options));
}

/// Computes at most max_batch tokens of the next step: 0 if more are left, 1 if it failed, 2 if a piece is there.
int EXPORT(advance_text)(void) {
    if (!step_begun) {
        step = (fovea_step){.struct_size = sizeof step};
        if (failed(fovea_next_step(generator, &step))) return 1;
        step_begun = 1;
    }
    fovea_step part = step;
    if (step.n_tokens > limits.max_batch) {
        part.n_tokens = limits.max_batch;
        part.logits = NULL;
        part.n_logits = 0;
        if (failed(fovea_forward_steps(workspace, &part, 1))) return 1;
        step.tokens += part.n_tokens;
        step.n_tokens -= part.n_tokens;
        return 0;
    }
    step_begun = 0;
    piece = (fovea_piece){.struct_size = sizeof piece};
    if (failed(fovea_forward_steps(workspace, &part, 1)) || failed(fovea_take(generator, &piece))) return 1;
    return 2;
}
uint32_t EXPORT(piece_finish)(void) { return piece.finish; }
const char* EXPORT(piece_text)(void) { return piece.text.bytes; }
size_t EXPORT(piece_text_bytes)(void) { return piece.text.n_bytes; }
const uint32_t* EXPORT(piece_tokens)(void) { return piece.tokens; }
size_t EXPORT(piece_token_count)(void) { return piece.n_tokens; }
uint32_t EXPORT(kept_tokens)(void) {
    fovea_generate_figures figures = {.struct_size = sizeof figures};
    return failed(fovea_generator_figures(generator, &figures)) ? 0 : figures.n_kept;
}

// ---- vectors, logits, attention ------------------------------------------------------------------------------------

/// Appends tokens to the session's text, or after a rewind begins another, with the logits after each into out
/// [n_tokens][vocab_size]. The generator's text is over.
int EXPORT(rewind_text)(void) { return failed(fovea_rewind(session, 0, NULL)); }
int EXPORT(compute_logits)(const uint32_t* tokens, size_t n_tokens, float* out) {
    return failed(fovea_forward_into(session, tokens, n_tokens, out, n_tokens * info.vocab_size));
}

/// A text's vector, or one for each token, into out [n_out].
int EXPORT(embed_tokens)(const uint32_t* tokens, size_t n_tokens, float* out, size_t n_out) {
    const uint32_t length = (uint32_t)n_tokens;
    const fovea_sequences source = {
        .struct_size = sizeof source, .ids = tokens, .n_ids = n_tokens, .lengths = &length, .n_lengths = 1};
    const fovea_encode_input input = {.struct_size = sizeof input, .source = &source};
    return failed(fovea_encode(workspace, &input, out, n_out));
}

int EXPORT(capture_attention)(uint32_t layer, int per_head, uint32_t n_positions, float* out, size_t n_out) {
    const fovea_attention attention = {.struct_size = sizeof attention,
                                       .layer = layer,
                                       .per_head = per_head ? 1 : 0,
                                       .n_queries = n_positions,
                                       .n_keys = n_positions,
                                       .out = out,
                                       .n_out = n_out};
    return failed(fovea_capture_attention(workspace, out ? &attention : NULL));
}
/// 0 if there is no such layer, or it has no attention.
uint32_t EXPORT(layer_heads)(uint32_t layer) {
    fovea_layer facts = {.struct_size = sizeof facts};
    return failed(fovea_model_layer(model, info.kind == FOVEA_VECTORS, layer, &facts)) ? 0 : facts.n_heads;
}
