use crate::error::{c_text, check, text_of, Given, Result};
use crate::ffi;
use crate::model::{Handle, Model};
use std::ptr;
use std::sync::Arc;

/// How texts are translated; zeros choose what is in brackets.
#[derive(Clone, Debug, Default)]
pub struct TranslateOptions {
    /// Threads [as many as CPUs].
    pub n_threads: u32,
    /// Beginnings that go on side by side [as many as the model says].
    pub n_beams: u32,
    /// Tokens of a text at most [as many as the model allows].
    pub max_new: u32,
}

/// The memory for writing one text from another, one after the other.
pub struct Translator {
    handle: *mut ffi::fovea_host_translator,
    _model: Arc<Handle>,
}

// SAFETY: one thread at a time may use it, whichever.
unsafe impl Send for Translator {}

impl Drop for Translator {
    fn drop(&mut self) {
        // SAFETY: made by the library, given back once, before its model.
        unsafe { ffi::fovea_host_free_translator(self.handle) }
    }
}

impl Translator {
    pub(crate) fn new(model: &Model, options: &TranslateOptions) -> Result<Translator> {
        let asked = ffi::fovea_host_translate_options {
            n_threads: options.n_threads,
            n_beams: options.n_beams,
            n_new: options.max_new,
            ..Default::default()
        };
        let mut handle = ptr::null_mut();
        // SAFETY: the model is open, and the translator holds it.
        check(unsafe { ffi::fovea_host_make_translator(model.handle(), &asked, &mut handle) })?;
        Ok(Translator { handle, _model: model.0.clone() })
    }

    /// What the model writes of `text`. Languages are named as the model does, "eng_Latn", or as people do, "en", "English";
    /// `None`: the tokenizer's own.
    pub fn translate(&mut self, text: &str, from: Option<&str>, to: Option<&str>) -> Result<String> {
        let text = c_text(text, "text")?;
        let from = from.map(|name| c_text(name, "from")).transpose()?;
        let to = to.map(|name| c_text(name, "to")).transpose()?;
        let [from, to] = [&from, &to].map(|name| name.as_ref().map_or(ptr::null(), |name| name.as_ptr()));
        let mut made = Given::none();
        // SAFETY: the translator is lent exclusively; the text is given back by `made`.
        check(unsafe { ffi::fovea_host_translate(self.handle, text.as_ptr(), from, to, &mut made.0) })?;
        // SAFETY: a text.
        Ok(unsafe { text_of(made.0) })
    }
}
