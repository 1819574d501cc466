//! Attention models on CPUs, from one file, with the same bits on every CPU: texts, conversations, sentence vectors, classes,
//! translations and speech.
//!
//! ```no_run
//! let model = fovea::Model::open("smollm2-instruct.fovea")?; // or a Hugging Face folder, or a GGUF file
//! let mut session = model.session(&fovea::Limits::default())?;
//! let messages = [fovea::Message::user("What is attention?")];
//! session.chat(&messages, &fovea::GenerateOptions { max_new: 64, ..Default::default() }, None, |text| {
//!     print!("{text}");
//!     true
//! })?;
//! # Ok::<(), fovea::Error>(())
//! ```
//!
//! A [`Model`] is shared by reference count: whatever is made of it keeps it open. Models and [`Form`]s are used by any number of
//! threads at once, anything else by one at a time, which the types say.
//!
//! Every function returns why it did nothing, in a line. A callback that panics ends the call, which panics with the same value.
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

mod callback;
mod error;
mod ffi;
mod generation;
mod model;
mod sequence;
mod session;
mod speech;
mod texts;
mod translator;

pub use error::{Error, ErrorKind};
pub use generation::{Cache, Finish, GenerateOptions, Generated, Limits, Sampler};
pub use model::{Form, FormKind, Kind, Model, OpenOptions};
pub use sequence::Sequence;
pub use session::{ChatOptions, Message, Session};
pub use speech::{read_sound, SpeechOptions, Span, Transcriber, Transcript};
pub use texts::{Finding, Score, TextOptions, Weight};
pub use translator::{TranslateOptions, Translator};

/// The version of the library that is linked in.
pub fn version() -> &'static str {
    // SAFETY: a literal of the library's, which a zero ends.
    unsafe { std::ffi::CStr::from_ptr(ffi::fovea_version()) }.to_str().unwrap_or_default()
}

/// The CPUs that this process may use: threads, where nothing else is asked for.
pub fn default_threads() -> u32 {
    // SAFETY: it takes nothing.
    unsafe { ffi::fovea_default_threads() }
}
