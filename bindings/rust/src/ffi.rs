//! Declarations of fovea_host.h, and those of fovea.h and fovea_generator.h that the crate calls. Names and order are the headers'.
#![allow(non_camel_case_types)]
use std::os::raw::{c_char, c_int, c_void};

macro_rules! handles {
    ($($name:ident)*) => { $(#[repr(C)] pub struct $name { _private: [u8; 0] })* };
}
handles!(fovea_host_model fovea_host_form fovea_host_session fovea_host_translator fovea_host_transcriber
         fovea_model fovea_session fovea_generator fovea_token_filter fovea_workspace fovea_logit_bias fovea_more_samplers);

pub const OK: c_int = 0;
pub const ARGUMENT: c_int = 2;
pub const NO_MEMORY: c_int = 3;
pub const CANCELLED: c_int = 4;
pub const READ_SPECIAL: c_int = 1;
pub const NO_SPECIAL: c_int = 2;

/// A struct whose zeros choose defaults and that begins with its size.
macro_rules! sized {
    ($($name:ident { $($field:ident: $kind:ty),* $(,)? })*) => { $(
        #[repr(C)]
        pub struct $name { pub struct_size: u32, $(pub $field: $kind),* }
        impl Default for $name {
            fn default() -> Self {
                // SAFETY: fields are numbers, pointers and optional functions, for which zeros are valid.
                let mut made: Self = unsafe { std::mem::zeroed() };
                made.struct_size = std::mem::size_of::<Self>() as u32;
                made
            }
        }
    )* };
}

pub type Run = Option<unsafe extern "C" fn(*mut c_void, u32, Option<unsafe extern "C" fn(*mut c_void, u32)>, *mut c_void)>;
pub type OnText = Option<unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int>;
pub type OnSegment = Option<unsafe extern "C" fn(*mut c_void, *const fovea_host_span) -> c_int>;

sized! {
    fovea_host_open_options {
        verify: u32, progress: Option<unsafe extern "C" fn(*mut c_void, u64, u64) -> c_int>, context: *mut c_void,
        adapters: *const fovea_host_adapter, n_adapters: usize,
    }
    fovea_host_chat_options { no_answer: u32, tools: *const c_char, extra: *const c_char }
    fovea_host_text_options {
        n_threads: u32, prompt: *const c_char, isa: *const c_char, n_whole_tokens: *mut usize, n_likeliest: u32,
        most_answer_tokens: u32, may_lack_answer: u32, joins_entities: u32, parse_special: u32,
    }
    fovea_host_translate_options { n_threads: u32, n_beams: u32, n_new: u32, isa: *const c_char }
    fovea_host_speech_options {
        n_threads: u32, words: u32, no_timestamps: u32, isa: *const c_char, language: *const c_char, task: *const c_char,
        prompt: *const c_char, seed: u64,
    }
    fovea_limits {
        max_positions: u32, max_batch: u32, max_text_bytes: u32, n_threads: u32, kv_type: u32, isa: *const c_char,
        max_sequences: u32, max_key_rows: u32, cancellable: u32, max_marks: u32, run: Run, run_context: *mut c_void,
        max_adapters: u32, max_adapter_rank: u32,
    }
    fovea_plan {
        vocab_size: u32, max_positions: u32, max_batch: u32, arena_bytes: u64, max_tokens: u64, max_piece_bytes: u64,
        prompt_suffix: *const c_char, prompt_suffix_bytes: usize, max_sequences: u32, max_key_rows: u32,
    }
    fovea_sampler {
        top_k: u32, temperature: f32, top_p: f32, min_p: f32, repeat_penalty: f32, seed: u64, frequency_penalty: f32,
        presence_penalty: f32, bias: *const fovea_logit_bias, n_bias: usize, more: *const fovea_more_samplers,
    }
    fovea_speculation {
        n_proposed: u32, always: u32, row_cost: f32, draft: *mut fovea_workspace, draft_cache: fovea_cache,
        clock: Option<unsafe extern "C" fn() -> u64>, draft_vectors: *mut f32, n_draft_vectors: usize,
    }
    fovea_generate_options {
        n_new: u32, sampler: *const fovea_sampler, filter: *const fovea_token_filter, speculation: *const fovea_speculation,
        stop: *const fovea_text, n_stop: usize, show_special: u32, n_recent: u32, memory: *const fovea_cache, n_counted: u32,
        counts_prompt: u32, end_tokens: *const u32, n_end_tokens: usize,
    }
    fovea_generate_figures {
        n_prompt: u32, n_kept: u32, n_tokens: u32, n_passes: u32, n_proposed: u32, n_accepted: u32, n_draft_passes: u32,
        n_forced: u32,
    }
}

#[repr(C)]
pub struct fovea_host_adapter {
    pub path: *const c_char,
    pub scale: f32,
}
#[repr(C)]
pub struct fovea_host_weight {
    pub id: u32,
    pub weight: f32,
}
#[repr(C)]
pub struct fovea_host_finding {
    pub text: *const c_char,
    pub label: *const c_char,
    pub score: f64,
    pub mask: usize,
}
#[repr(C)]
pub struct fovea_host_span {
    pub start: f64,
    pub end: f64,
    pub text: *const c_char,
    pub probability: f64,
}
#[repr(C)]
pub struct fovea_host_transcript {
    pub language: *const c_char,
    pub text: *const c_char,
    pub segments: *const fovea_host_span,
    pub n_segments: usize,
    pub words: *const fovea_host_span,
    pub n_words: usize,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fovea_cache {
    pub pool: *mut c_void,
    pub slot: u32,
    pub generation: u32,
}
#[repr(C)]
pub struct fovea_text {
    pub bytes: *const c_char,
    pub n_bytes: usize,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fovea_status {
    pub code: u32,
    pub what: *const c_char,
    pub wanted: u64,
    pub had: u64,
}

extern "C" {
    pub fn fovea_version() -> *const c_char;
    pub fn fovea_default_threads() -> u32;
    pub fn fovea_describe(status: fovea_status, line: *mut c_char, capacity: usize) -> usize;
    pub fn fovea_plan_session(model: *const fovea_model, limits: *const fovea_limits, plan: *mut fovea_plan) -> fovea_status;
    pub fn fovea_make_session_of(
        model: *const fovea_model, limits: *const fovea_limits, arena: *mut c_void, arena_bytes: usize,
        session: *mut *mut fovea_session,
    ) -> fovea_status;
    pub fn fovea_forward(session: *mut fovea_session, tokens: *const u32, n_tokens: usize) -> fovea_status;
    pub fn fovea_logits(session: *const fovea_session) -> *const f32;
    pub fn fovea_kv_len(session: *const fovea_session) -> u32;
    pub fn fovea_rewind(session: *mut fovea_session, kv_len: u32, reached: *mut u32) -> fovea_status;
    pub fn fovea_session_cache(session: *const fovea_session) -> fovea_cache;
    pub fn fovea_cache_bytes(cache: *const fovea_cache) -> u64;
    pub fn fovea_save_cache(cache: *const fovea_cache, out: *mut c_void, capacity: usize, written: *mut usize) -> fovea_status;
    pub fn fovea_restore_cache(cache: *const fovea_cache, saved: *const c_void, saved_bytes: usize) -> fovea_status;
    pub fn fovea_generator_figures(generator: *const fovea_generator, figures: *mut fovea_generate_figures) -> fovea_status;
    pub fn fovea_generator_finish(generator: *const fovea_generator) -> u32;

    pub fn fovea_host_error() -> *const c_char;
    pub fn fovea_host_free(memory: *mut c_void);
    pub fn fovea_host_open(path: *const c_char, options: *const fovea_host_open_options, model: *mut *mut fovea_host_model) -> c_int;
    pub fn fovea_host_close(model: *mut fovea_host_model);
    pub fn fovea_host_kind(model: *const fovea_host_model) -> u32;
    pub fn fovea_host_engine_model(model: *const fovea_host_model) -> *const fovea_model;
    pub fn fovea_host_metadata(model: *const fovea_host_model, key: *const c_char, value: *mut *mut c_char) -> c_int;
    pub fn fovea_host_tokenize(
        model: *const fovea_host_model, text: *const c_char, how: c_int, tokens: *mut *mut u32, n_tokens: *mut usize,
    ) -> c_int;
    pub fn fovea_host_detokenize(
        model: *const fovea_host_model, tokens: *const u32, n_tokens: usize, with_special: c_int, text: *mut *mut c_char,
    ) -> c_int;
    pub fn fovea_host_render_chat(
        model: *const fovea_host_model, messages: *const c_char, options: *const fovea_host_chat_options,
        prompt: *mut *mut c_char,
    ) -> c_int;
    pub fn fovea_host_compile_form(
        model: *const fovea_host_model, kind: u32, text: *const c_char, form: *mut *mut fovea_host_form,
    ) -> c_int;
    pub fn fovea_host_free_form(form: *mut fovea_host_form);
    pub fn fovea_host_session_bytes(model: *const fovea_host_model, limits: *const fovea_limits, n_bytes: *mut u64) -> c_int;
    pub fn fovea_host_start(
        model: *const fovea_host_model, limits: *const fovea_limits, session: *mut *mut fovea_host_session,
    ) -> c_int;
    pub fn fovea_host_end(session: *mut fovea_host_session);
    pub fn fovea_host_scale_adapters(session: *mut fovea_host_session, scales: *const f32) -> c_int;
    pub fn fovea_host_propose_by(
        session: *mut fovea_host_session, draft: *const fovea_host_model, n_proposed: u32,
    ) -> c_int;
    pub fn fovea_host_save(session: *const fovea_host_session, saved: *mut *mut c_void, n_bytes: *mut usize) -> c_int;
    pub fn fovea_host_restore(session: *mut fovea_host_session, saved: *const c_void, n_bytes: usize) -> c_int;
    pub fn fovea_host_generator(session: *const fovea_host_session) -> *const fovea_generator;
    pub fn fovea_host_generate(
        session: *mut fovea_host_session, tokens: *const u32, n_tokens: usize, options: *const fovea_generate_options,
        form: *const fovea_host_form, on_text: OnText, context: *mut c_void,
    ) -> c_int;
    pub fn fovea_host_chat(
        session: *mut fovea_host_session, messages: *const c_char, how: *const fovea_host_chat_options,
        options: *const fovea_generate_options, form: *const fovea_host_form, on_text: OnText, context: *mut c_void,
    ) -> c_int;
    pub fn fovea_host_width(model: *const fovea_host_model) -> usize;
    pub fn fovea_host_embed(
        model: *const fovea_host_model, texts: *const *const c_char, n_texts: usize, options: *const fovea_host_text_options,
        vectors: *mut f32,
    ) -> c_int;
    pub fn fovea_host_embed_sparse(
        model: *const fovea_host_model, text: *const c_char, options: *const fovea_host_text_options,
        weights: *mut *mut fovea_host_weight, n_weights: *mut usize,
    ) -> c_int;
    pub fn fovea_host_embed_tokens(
        model: *const fovea_host_model, text: *const c_char, is_query: c_int, options: *const fovea_host_text_options,
        rows: *mut *mut f32, n_rows: *mut usize, width: *mut usize,
    ) -> c_int;
    pub fn fovea_host_rank(
        model: *const fovea_host_model, query: *const c_char, documents: *const *const c_char, n_documents: usize,
        options: *const fovea_host_text_options, scores: *mut f64,
    ) -> c_int;
    pub fn fovea_host_label(model: *const fovea_host_model, i: usize) -> *const c_char;
    pub fn fovea_host_classify(
        model: *const fovea_host_model, texts: *const *const c_char, pairs: *const *const c_char, n_texts: usize,
        options: *const fovea_host_text_options, scores: *mut f32,
    ) -> c_int;
    pub fn fovea_host_rows(
        model: *const fovea_host_model, text: *const c_char, pair: *const c_char, of_head: c_int,
        options: *const fovea_host_text_options, rows: *mut *mut f32, n_rows: *mut usize, width: *mut usize,
    ) -> c_int;
    pub fn fovea_host_find(
        model: *const fovea_host_model, text: *const c_char, pair: *const c_char, options: *const fovea_host_text_options,
        findings: *mut *mut fovea_host_finding, n_findings: *mut usize,
    ) -> c_int;
    pub fn fovea_host_make_translator(
        model: *const fovea_host_model, options: *const fovea_host_translate_options,
        translator: *mut *mut fovea_host_translator,
    ) -> c_int;
    pub fn fovea_host_free_translator(translator: *mut fovea_host_translator);
    pub fn fovea_host_translate(
        translator: *mut fovea_host_translator, text: *const c_char, from: *const c_char, to: *const c_char,
        translation: *mut *mut c_char,
    ) -> c_int;
    pub fn fovea_host_read_sound(path: *const c_char, sample_rate: u32, samples: *mut *mut f32, n_samples: *mut usize) -> c_int;
    pub fn fovea_host_sample_rate(model: *const fovea_host_model) -> u32;
    pub fn fovea_host_make_transcriber(
        model: *const fovea_host_model, options: *const fovea_host_speech_options,
        transcriber: *mut *mut fovea_host_transcriber,
    ) -> c_int;
    pub fn fovea_host_free_transcriber(transcriber: *mut fovea_host_transcriber);
    pub fn fovea_host_transcribe(
        transcriber: *mut fovea_host_transcriber, samples: *const f32, n_samples: usize, on_segment: OnSegment,
        context: *mut c_void, transcript: *mut *mut fovea_host_transcript,
    ) -> c_int;
}
