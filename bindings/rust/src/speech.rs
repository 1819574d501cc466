use crate::error::{c_text, check, slice_of, text_of, Given, Result};
use crate::ffi;
use crate::model::{Handle, Model};
use std::ptr;
use std::sync::Arc;

/// How recordings are transcribed; zeros and `None` choose what is in brackets.
#[derive(Clone, Debug, Default)]
pub struct SpeechOptions {
    /// Threads [as many as CPUs].
    pub n_threads: u32,
    /// With times of words.
    pub words: bool,
    /// "en" [the likeliest].
    pub language: Option<String>,
    /// Into English.
    pub translate: bool,
    /// A text as if it had been said before.
    pub prompt: Option<String>,
}

/// A word or a segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Seconds from the recording's start.
    pub start: f64,
    /// The same of its end.
    pub end: f64,
    /// What was said.
    pub text: String,
    /// Mean of a word's tokens; exp of the mean log probability of a segment's window.
    pub probability: f64,
}

/// What was said in a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// "en"; "" if there is no sound.
    pub language: String,
    /// The whole.
    pub text: String,
    /// Its segments.
    pub segments: Vec<Span>,
    /// All words, if they were asked for.
    pub words: Vec<Span>,
}

/// The memory for transcribing one recording after the other.
pub struct Transcriber {
    handle: *mut ffi::fovea_host_transcriber,
    _model: Arc<Handle>,
}

// SAFETY: one thread at a time may use it, whichever.
unsafe impl Send for Transcriber {}

impl Drop for Transcriber {
    fn drop(&mut self) {
        // SAFETY: made by the library, given back once, before its model.
        unsafe { ffi::fovea_host_free_transcriber(self.handle) }
    }
}

/// The samples of a sound file (WAV) as mono at `sample_rate` Hz: in [-1, 1].
pub fn read_sound(path: &str, sample_rate: u32) -> Result<Vec<f32>> {
    let path = c_text(path, "path")?;
    let (mut samples, mut n) = (Given::none(), 0);
    // SAFETY: the samples are given back by `samples`.
    check(unsafe { ffi::fovea_host_read_sound(path.as_ptr(), sample_rate, &mut samples.0, &mut n) })?;
    // SAFETY: there are so many.
    Ok(unsafe { samples.values(n) }.to_vec())
}

impl Model {
    /// Samples a second that a model of speech reads; 0 for other models.
    pub fn sample_rate(&self) -> u32 {
        // SAFETY: the handle is open.
        unsafe { ffi::fovea_host_sample_rate(self.handle()) }
    }
}

/// # Safety
/// There are so many, with texts.
unsafe fn spans(spans: *const ffi::fovea_host_span, n: usize) -> Vec<Span> {
    // SAFETY: as the caller says.
    unsafe { slice_of(spans, n) }
        .iter()
        .map(|each| Span {
            start: each.start,
            end: each.end,
            text: unsafe { text_of(each.text) },
            probability: each.probability,
        })
        .collect()
}

impl Transcriber {
    pub(crate) fn new(model: &Model, options: &SpeechOptions) -> Result<Transcriber> {
        let language = options.language.as_deref().map(|text| c_text(text, "language")).transpose()?;
        let prompt = options.prompt.as_deref().map(|text| c_text(text, "prompt")).transpose()?;
        let asked = ffi::fovea_host_speech_options {
            n_threads: options.n_threads,
            words: options.words.into(),
            language: language.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            task: if options.translate { b"translate\0".as_ptr().cast() } else { ptr::null() },
            prompt: prompt.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            ..Default::default()
        };
        let mut handle = ptr::null_mut();
        // SAFETY: the model is open, and the transcriber holds it; the library copies the texts.
        check(unsafe { ffi::fovea_host_make_transcriber(model.handle(), &asked, &mut handle) })?;
        Ok(Transcriber { handle, _model: model.0.clone() })
    }

    /// The transcript of samples at the model's rate.
    pub fn transcribe(&mut self, samples: &[f32]) -> Result<Transcript> {
        let mut made = Given::none();
        // SAFETY: the transcriber is lent exclusively; the transcript is given back by `made`, with all in it.
        unsafe {
            check(ffi::fovea_host_transcribe(
                self.handle, samples.as_ptr(), samples.len(), None, ptr::null_mut(), &mut made.0,
            ))?;
            let said: &ffi::fovea_host_transcript = &*made.0;
            Ok(Transcript {
                language: text_of(said.language),
                text: text_of(said.text),
                segments: spans(said.segments, said.n_segments),
                words: spans(said.words, said.n_words),
            })
        }
    }
}
