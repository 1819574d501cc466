use crate::error::{c_text, Result};
use crate::ffi;
use std::ptr;

/// How keys and values are cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// 32 bits.
    #[default]
    F32,
    /// 16 bits.
    F16,
    /// 8 bits, with scales.
    Q8,
    /// 4 bits, with scales.
    Q4,
}

/// Capacities; zeros and `None` choose what is in brackets.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Tokens of a text and its continuation together [a session: the model's, 4,096 at most; a sequence: the model's].
    pub max_positions: u32,
    /// Rows computed together [192].
    pub max_batch: u32,
    /// Threads [a session: as many as CPUs; a sequence: 1].
    pub n_threads: u32,
    /// How keys and values are cached.
    pub cache: Cache,
    /// An instruction set's name, which changes no result [the CPU's best].
    pub isa: Option<String>,
}

impl Limits {
    pub(crate) fn with<T>(&self, call: impl FnOnce(*const ffi::fovea_limits) -> Result<T>) -> Result<T> {
        let isa = self.isa.as_deref().map(|isa| c_text(isa, "isa")).transpose()?;
        call(&ffi::fovea_limits {
            max_positions: self.max_positions,
            max_batch: self.max_batch,
            n_threads: self.n_threads,
            kv_type: match self.cache {
                Cache::F32 => 0,
                Cache::F16 => 1,
                Cache::Q8 => 3,
                Cache::Q4 => 4,
            },
            isa: isa.as_ref().map_or(ptr::null(), |isa| isa.as_ptr()),
            ..Default::default()
        })
    }
}

/// How a token is chosen; zeros choose what is in brackets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampler {
    /// [the most likely token]
    pub temperature: f32,
    /// Keep the k most likely [all].
    pub top_k: u32,
    /// Then the fewest whose probabilities reach p [1].
    pub top_p: f32,
    /// Then those at least so many times as likely as the first [0].
    pub min_p: f32,
    /// Divides positive, multiplies negative logits of recent tokens [1].
    pub repeat_penalty: f32,
    /// Taken from a token's logit for each time it came [0].
    pub frequency_penalty: f32,
    /// Taken once, if it came at all [0].
    pub presence_penalty: f32,
    /// One seed gives one text, on every machine.
    pub seed: u64,
}

/// How a text is made; zeros choose what is in brackets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GenerateOptions {
    /// New tokens at most [as many as there is room for].
    pub max_new: u32,
    /// How tokens are chosen.
    pub sampler: Sampler,
    /// The text ends before the first of these; none is empty.
    pub stop: Vec<String>,
    /// Special tokens show in the text.
    pub show_special: bool,
    /// A draft proposes tokens even if it does not pay, as [`Session::propose_by`](crate::Session::propose_by) alone does not.
    pub always_propose: bool,
}

impl GenerateOptions {
    pub(crate) fn with<T>(&self, call: impl FnOnce(*const ffi::fovea_generate_options) -> T) -> T {
        let sampler = ffi::fovea_sampler {
            top_k: self.sampler.top_k,
            temperature: self.sampler.temperature,
            top_p: self.sampler.top_p,
            min_p: self.sampler.min_p,
            repeat_penalty: self.sampler.repeat_penalty,
            seed: self.sampler.seed,
            frequency_penalty: self.sampler.frequency_penalty,
            presence_penalty: self.sampler.presence_penalty,
            ..Default::default()
        };
        let speculation = ffi::fovea_speculation { always: 1, ..Default::default() };
        let stop: Vec<_> =
            self.stop.iter().map(|stop| ffi::fovea_text { bytes: stop.as_ptr().cast(), n_bytes: stop.len() }).collect();
        call(&ffi::fovea_generate_options {
            n_new: self.max_new,
            sampler: &sampler,
            stop: stop.as_ptr(),
            n_stop: stop.len(),
            show_special: self.show_special.into(),
            speculation: if self.always_propose { &speculation } else { ptr::null() },
            ..Default::default()
        })
    }
}

/// Why a text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// The model ended it.
    EndToken,
    /// A stop text, which is no part of it.
    StopText,
    /// `max_new` tokens.
    Length,
    /// The session has no more room.
    Context,
    /// The callback ended it.
    Caller,
}

/// Counts of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Why it ended.
    pub finish: Finish,
    /// Tokens of the prompt.
    pub n_prompt: u32,
    /// Those of them that the session still held, so that they were not computed.
    pub n_kept: u32,
    /// New tokens.
    pub n_tokens: u32,
    /// Passes of the model after the prompt's.
    pub n_passes: u32,
    /// Tokens that a draft proposed.
    pub n_proposed: u32,
    /// Those of them that were right.
    pub n_accepted: u32,
}
