// The host library in C: models of any source, conversations, forms of answers, vectors, classes, transcripts and
// translations, for programs that have a heap. fovea.h is the engine alone, which takes no memory by itself; fovea/host/*.h
// are the same library's headers for C++.
//
//     fovea_host_model* model;
//     if (fovea_host_open("model.gguf", NULL, &model)) puts(fovea_host_error());
//     fovea_host_session* session;
//     fovea_host_start(model, NULL, &session);
//     fovea_host_chat(session, "[{\"role\": \"user\", \"content\": \"Hello\"}]", NULL, NULL, NULL, print, NULL);
//
// examples/chat.c, classify.c and transcribe.c are whole programs, and examples/host.cpp is one in C++. Link fovea::host (CMake) or fovea_host (pkg-config).
//
// Results: each function returns FOVEA_HOST_OK or why it did nothing. fovea_host_error() is then a line, "expected X, got Y".
// Memory: a result given by a pointer to a pointer is the caller's, who gives it back once: a handle to the function
// that names it, anything else to fovea_host_free. Handles must outlive objects made of them: a model its sessions,
// forms, transcribers and translators. Texts are UTF-8 and end with a zero byte, given or received.
// Threads: any number use a model and its forms at once. Anything else made of a model is used by one thread at a time.
// Structs start with their size as the caller knows it, as in fovea.h. NULL options are all zero: what is in
// [brackets].
#ifndef FOVEA_FOVEA_HOST_H
#define FOVEA_FOVEA_HOST_H
#include "fovea/fovea.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

// ---- errors and memory ---------------------------------------------------------------------------------------------

enum {
    FOVEA_HOST_OK = 0,
    FOVEA_HOST_FAILED = 1,     ///< a file, a model or the system does not allow it
    FOVEA_HOST_ARGUMENT = 2,   ///< the caller's value cannot be taken
    FOVEA_HOST_NO_MEMORY = 3,  ///< the system has no more
    FOVEA_HOST_CANCELLED = 4   ///< a callback of the caller's ended it
};

/// Why this thread's last call that failed did: one line, which stays until the thread's next failure. Never NULL.
const char* fovea_host_error(void);
/// Gives back what a function of this header has made. NULL is allowed.
void fovea_host_free(void* memory);

// ---- models --------------------------------------------------------------------------------------------------------

/// A model's file, mapped, with its tokenizer.
typedef struct fovea_host_model fovea_host_model;

/// A low-rank adapter of the model: a file that `fovea convert ADAPTER --base MODEL` made.
typedef struct {
    const char* path;
    float scale;  ///< multiplies its products; 1: as it was trained
} fovea_host_adapter;

typedef struct {
    uint32_t struct_size;  ///< sizeof(fovea_host_open_options)
    uint32_t verify;       ///< not 0: every section's checksum is computed first, which reads all of the file
    /// Called while a source is converted, with pieces done and to do. Anything but 0 ends the conversion. [NULL]
    int (*progress)(void* context, uint64_t done, uint64_t total);
    void* context;                       ///< given to progress
    const fovea_host_adapter* adapters;  ///< [n_adapters] in use in all that is made of the model [NULL]
    size_t n_adapters;
} fovea_host_open_options;

/// Opens a Fovea file, or a source (a Hugging Face folder, a GGUF or .safetensors file), which is converted once into the user's
/// cache folder.
int fovea_host_open(const char* path, const fovea_host_open_options* options, fovea_host_model** model);
/// Unmaps the file. NULL is allowed.
void fovea_host_close(fovea_host_model* model);

/// Tasks of models.
enum {
    FOVEA_HOST_TEXT = 0,         ///< text goes on: fovea_host_start
    FOVEA_HOST_VECTORS = 1,      ///< texts become vectors: fovea_host_embed
    FOVEA_HOST_CLASSES = 2,      ///< texts get labels: fovea_host_classify
    FOVEA_HOST_SPEECH = 3,       ///< recordings become text: fovea_host_make_transcriber
    FOVEA_HOST_TRANSLATION = 4,  ///< one text becomes another: fovea_host_make_translator
    FOVEA_HOST_OTHER = 5,        ///< attention alone; layers from vectors to vectors
    FOVEA_HOST_FINDINGS = 6,     ///< heads for words, answers and masks: fovea_host_find
    FOVEA_HOST_SPARSE = 7,       ///< texts become sparse vectors: fovea_host_embed_sparse
    FOVEA_HOST_LATE = 8          ///< texts become vectors of tokens: fovea_host_embed_tokens, fovea_host_rank
};
uint32_t fovea_host_kind(const fovea_host_model* model);
/// The same model for the engine's functions of fovea.h. It stays as long as `model` does.
const struct fovea_model* fovea_host_engine_model(const fovea_host_model* model);
/// A value of the file's metadata, such as "chat_template" (docs/format.md lists keys); *value is NULL if the file has
/// no such key.
int fovea_host_metadata(const fovea_host_model* model, const char* key, char** value);

/// The ids of a text. how: flags of fovea.h, FOVEA_READ_SPECIAL and FOVEA_NO_SPECIAL.
int fovea_host_tokenize(const fovea_host_model* model, const char* text, int how, uint32_t** tokens, size_t* n_tokens);
/// The text of tokens [n_tokens]. with_special: not 0 shows special tokens.
int fovea_host_detokenize(const fovea_host_model* model, const uint32_t* tokens, size_t n_tokens, int with_special,
                          char** text);

// ---- conversations -------------------------------------------------------------------------------------------------

typedef struct {
    uint32_t struct_size;  ///< sizeof(fovea_host_chat_options)
    uint32_t no_answer;    ///< not 0: the prompt does not begin the model's answer
    const char* tools;     ///< a JSON array of tools as OpenAI's API has them [NULL: none]
    const char* extra;     ///< a JSON object of more variables for the template, as {"enable_thinking": false} [NULL]
} fovea_host_chat_options;

/// The prompt that the model's chat template makes of messages, a JSON array of objects with "role" and "content". It is
/// text: whoever tokenizes it with FOVEA_READ_SPECIAL reads special tokens in messages too, as fovea_host_chat does not.
int fovea_host_render_chat(const fovea_host_model* model, const char* messages, const fovea_host_chat_options* options,
                           char** prompt);

/// Kinds of forms that an answer must fit.
enum { FOVEA_HOST_JSON_SCHEMA = 0, FOVEA_HOST_GBNF = 1, FOVEA_HOST_REGEX = 2 };
/// A form compiled for a model's vocabulary; any number of sessions of that model share one.
typedef struct fovea_host_form fovea_host_form;
int fovea_host_compile_form(const fovea_host_model* model, uint32_t kind, const char* text, fovea_host_form** form);
void fovea_host_free_form(fovea_host_form* form);
/// What fovea_open_constraint takes of the form, for programs that call the engine's own functions: the compiled form [*n_form] and the
/// index of the vocabulary [*n_index]. Both stay as long as `form` does.
int fovea_host_form_bytes(const fovea_host_form* form, const void** bytes, size_t* n_bytes, const void** index,
                          size_t* n_index);

/// A text's memory: its keys and values, and the generator that goes on with it.
typedef struct fovea_host_session fovea_host_session;

/// Exactly the bytes that fovea_host_start takes for the session and its generator. limits: fovea.h's; here max_positions is
/// [the model's, 4096 at most] and n_threads is [fovea_default_threads()].
int fovea_host_session_bytes(const fovea_host_model* model, const fovea_limits* limits, uint64_t* n_bytes);
/// Takes that memory, once. A call that generates allocates only the prompt's text and tokens.
int fovea_host_start(const fovea_host_model* model, const fovea_limits* limits, fovea_host_session** session);
void fovea_host_end(fovea_host_session* session);
/// Other scales, one for each of the model's adapters, for the texts that follow; 0: without it. What the session held
/// is forgotten.
int fovea_host_scale_adapters(fovea_host_session* session, const float* scales);
/// From here on `draft` proposes tokens: a smaller model with the same tokens, or the model's next-token head (`fovea convert --mtp`).
/// Texts and logits are those without it, in every bit. Takes memory for both; what the session holds stays. The draft must outlive
/// the session. n_proposed: tokens of a pass at most, unless a text's options->speculation says another number [8].
int fovea_host_propose_by(fovea_host_session* session, const fovea_host_model* draft, uint32_t n_proposed);
/// What the session holds, with the tokens of its text: saved [*n_bytes], for fovea_host_free. A file of these bytes is one of
/// `fovea run --session`, and the reverse.
int fovea_host_save(const fovea_host_session* session, void** saved, size_t* n_bytes);
/// The session holds what another one did, of the same model, cache type and adapters: a text that begins alike is not computed
/// again, on any machine. saved [n_bytes] may be anything at all. Errors: the session is as it was; empty if the tokens are not those
/// that were saved.
int fovea_host_restore(fovea_host_session* session, const void* saved, size_t n_bytes);
/// The session's generator, for fovea_generator_figures, _tokens and _finish of the last text. Another one after
/// fovea_host_propose_by.
const fovea_generator* fovea_host_generator(const fovea_host_session* session);

/// Called with each new piece of text. Anything but 0 ends the text there.
typedef int (*fovea_host_on_text)(void* context, const char* text);

/// Goes on after tokens [n_tokens], and gives the text to on_text as it is made. The beginning of the tokens that the
/// session still holds is not computed again. options: fovea_generator.h's, without a filter if there is a form. form:
/// the form of the text [NULL: any text]. Results: FOVEA_HOST_CANCELLED if on_text ended it.
int fovea_host_generate(fovea_host_session* session, const uint32_t* tokens, size_t n_tokens,
                        const fovea_generate_options* options, const fovea_host_form* form, fovea_host_on_text on_text,
                        void* context);
/// The model's answer to a conversation: fovea_host_render_chat with `how`, and fovea_host_generate until the turn ends.
/// options->end_tokens and stop are the template's if they are not given.
int fovea_host_chat(fovea_host_session* session, const char* messages, const fovea_host_chat_options* how,
                    const fovea_generate_options* options, const fovea_host_form* form, fovea_host_on_text on_text,
                    void* context);

// ---- vectors and classes of texts ----------------------------------------------------------------------------------

typedef struct {
    uint32_t struct_size;         ///< sizeof(fovea_host_text_options)
    uint32_t n_threads;           ///< [fovea_default_threads()]
    const char* prompt;           ///< the name of a prompt of the model's, "query"; "": none [NULL: the model's choice]
    const char* isa;              ///< the instruction set's name [the CPU's best]
    size_t* n_whole_tokens;       ///< [n_texts] each text's tokens before it was cut to what the model takes [NULL]
    uint32_t n_likeliest;         ///< findings of each mask [5]
    uint32_t most_answer_tokens;  ///< of a text's answer [30]
    uint32_t may_lack_answer;     ///< not 0: no finding where the model finds no answer likelier than any
    uint32_t joins_entities;      ///< not 0: the words of one entity (B-PER, I-PER) are one finding, others none
    uint32_t parse_special;       ///< not 0: [SEP] and the like in texts are those tokens
} fovea_host_text_options;

/// Floats of a vector of fovea_host_embed or of a text's scores; 0 for other models.
size_t fovea_host_width(const fovea_host_model* model);
/// The vector of each text, pooled and normalised as the model's source says: vectors [n_texts][width].
int fovea_host_embed(const fovea_host_model* model, const char* const* texts, size_t n_texts,
                     const fovea_host_text_options* options, float* vectors);

/// A token of a sparse vector; those that it lacks weigh 0.
typedef struct {
    uint32_t id;
    float weight;
} fovea_host_weight;
/// The sparse vector of a text, by ids: weights [*n_weights], for fovea_host_free.
int fovea_host_embed_sparse(const fovea_host_model* model, const char* text, const fovea_host_text_options* options,
                            fovea_host_weight** weights, size_t* n_weights);

/// The vectors of a text's tokens, of length 1, of a model of late interaction, as a query's if is_query is not 0, else as a
/// document's: rows [*n_rows][*width], for fovea_host_free.
int fovea_host_embed_tokens(const fovea_host_model* model, const char* text, int is_query,
                            const fovea_host_text_options* options, float** rows, size_t* n_rows, size_t* width);
/// Each document's score for the query, by a reranker or by late interaction: scores [n_documents].
int fovea_host_rank(const fovea_host_model* model, const char* query, const char* const* documents, size_t n_documents,
                    const fovea_host_text_options* options, double* scores);

/// The name of label i; NULL from fovea_host_width on.
const char* fovea_host_label(const fovea_host_model* model, size_t i);
/// Each text's score for every label: scores [n_texts][width], probabilities if the model's head gives them. pairs
/// [n_texts]: each text's second one, for models that read two, a reranker's passage for example. [NULL: none]
int fovea_host_classify(const fovea_host_model* model, const char* const* texts, const char* const* pairs,
                        size_t n_texts, const fovea_host_text_options* options, float* scores);

/// What the model makes of the tokens of a text, or of a text and its pair: the vectors that its layers leave, or with
/// of_head not 0 the logits of its head, of a head for classes one row: rows [*n_rows][*width], for fovea_host_free.
int fovea_host_rows(const fovea_host_model* model, const char* text, const char* pair, int of_head,
                    const fovea_host_text_options* options, float** rows, size_t* n_rows, size_t* width);

/// What a head for words, answers or masks finds in a text.
typedef struct {
    const char* text;   ///< a word of the text; the answer, as the second text has it; a token in a mask's place
    const char* label;  ///< the word's; "" of answers and masks
    double score;       ///< probability
    size_t mask;        ///< number of the mask
} fovea_host_finding;
/// The findings of a text: every word, the likeliest answer to the question `text` in the text `pair`, or the likeliest
/// tokens of each mask. One fovea_host_free gives back all. pair: of answers alone [NULL]
int fovea_host_find(const fovea_host_model* model, const char* text, const char* pair,
                    const fovea_host_text_options* options, fovea_host_finding** findings, size_t* n_findings);

// ---- translations and summaries ------------------------------------------------------------------------------------

/// The memory for writing one text from another, one after the other.
typedef struct fovea_host_translator fovea_host_translator;

typedef struct {
    uint32_t struct_size;  ///< sizeof(fovea_host_translate_options)
    uint32_t n_threads;    ///< [fovea_default_threads()]
    uint32_t n_beams;      ///< beginnings that go on side by side, at most 64 [as many as the model says]
    uint32_t n_new;        ///< tokens of a text at most [as many as the model allows]
    const char* isa;       ///< the instruction set's name [the CPU's best]
} fovea_host_translate_options;

/// Takes all memory that translating needs.
int fovea_host_make_translator(const fovea_host_model* model, const fovea_host_translate_options* options,
                               fovea_host_translator** translator);
void fovea_host_free_translator(fovea_host_translator* translator);
/// What the model writes of `text`: a translation, a summary. from, to: languages as the model names them, "eng_Latn", or as
/// people do, "en", "English" [NULL: the tokenizer's own]. A text longer than the model reads at once is split where sentences
/// end.
int fovea_host_translate(fovea_host_translator* translator, const char* text, const char* from, const char* to,
                         char** translation);

// ---- speech --------------------------------------------------------------------------------------------------------

/// The samples of a sound file (WAV; FLAC, Ogg, MP3 and others with libsndfile) as mono at `sample_rate` Hz: floats in [-1, 1].
int fovea_host_read_sound(const char* path, uint32_t sample_rate, float** samples, size_t* n_samples);
/// Samples a second that a model of speech reads; 0 for other models.
uint32_t fovea_host_sample_rate(const fovea_host_model* model);
/// The log-mel frames of samples [n_samples] at the model's rate: frames [*n_frames][*n_mels], a whole window at least.
int fovea_host_speech_frames(const fovea_host_model* model, const float* samples, size_t n_samples, float** frames,
                             size_t* n_frames, size_t* n_mels);

/// The memory for transcribing one recording after the other.
typedef struct fovea_host_transcriber fovea_host_transcriber;

typedef struct {
    uint32_t struct_size;    ///< sizeof(fovea_host_speech_options)
    uint32_t n_threads;      ///< [fovea_default_threads()]
    uint32_t words;          ///< not 0: times of words
    uint32_t no_timestamps;  ///< not 0: the model writes no times, and each window is all of 30 seconds
    const char* isa;         ///< the instruction set's name [the CPU's best]
    const char* language;    ///< "en" [NULL: the likeliest]
    const char* task;        ///< "transcribe" or "translate" [transcribe]
    const char* prompt;      ///< a text as if it had been said before [NULL]
    uint64_t seed;           ///< for the temperatures above 0
} fovea_host_speech_options;

/// A word or a segment: when it was said, in seconds from the recording's start, and its text.
typedef struct {
    double start, end;
    const char* text;
    double probability;  ///< mean of a word's tokens; exp of the mean log probability of a segment's window
} fovea_host_span;

typedef struct {
    const char* language;  ///< "en"; "" if there is no sound
    const char* text;      ///< the whole
    const fovea_host_span* segments;
    size_t n_segments;
    const fovea_host_span* words;  ///< all words, if the options asked for them
    size_t n_words;
} fovea_host_transcript;

/// Takes all memory that transcribing needs.
int fovea_host_make_transcriber(const fovea_host_model* model, const fovea_host_speech_options* options,
                                fovea_host_transcriber** transcriber);
void fovea_host_free_transcriber(fovea_host_transcriber* transcriber);
/// The transcript of samples [n_samples] at the model's rate. on_segment is called as segments are decided, and ends
/// the work with anything but 0 [NULL]. One fovea_host_free gives back the transcript with all in it.
int fovea_host_transcribe(fovea_host_transcriber* transcriber, const float* samples, size_t n_samples,
                          int (*on_segment)(void* context, const fovea_host_span* segment), void* context,
                          fovea_host_transcript** transcript);

#ifdef __cplusplus
}
#endif
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
#endif
