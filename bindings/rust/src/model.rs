use crate::callback::Callback;
use crate::error::{c_text, check, text_of, Error, Given, Result};
use crate::ffi;
use crate::generation::Limits;
use crate::{Session, Transcriber, Translator};
use std::ffi::CString;
use std::os::raw::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

/// A model's file, mapped, with its tokenizer. A clone is the same model.
#[derive(Clone)]
pub struct Model(pub(crate) Arc<Handle>);

pub(crate) struct Handle {
    pub model: *mut ffi::fovea_host_model,
    pub n_adapters: usize,
}

// SAFETY: a model never changes; the library lets any number of threads use it.
unsafe impl Send for Handle {}
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: whatever was made of the model holds this handle, so nothing is left.
        unsafe { ffi::fovea_host_close(self.model) }
    }
}

/// How a model is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Computes every section's checksum first, which reads all of the file.
    pub verify: bool,
    /// Low-rank adapters, files that `fovea convert ADAPTER --base MODEL` made, each with what multiplies it (1: as trained).
    pub adapters: Vec<(PathBuf, f32)>,
}

/// What a model is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A text goes on: [`Model::session`].
    Text,
    /// Texts become vectors: [`Model::embed`].
    Vectors,
    /// Texts get labels: [`Model::classify`].
    Classes,
    /// Recordings become text: [`Model::transcriber`].
    Speech,
    /// One text becomes another: [`Model::translator`].
    Translation,
    /// Attention alone; layers from vectors to vectors.
    Other,
    /// Words, answers and masks of texts: [`Model::find`].
    Findings,
    /// Texts become sparse vectors: [`Model::embed_sparse`].
    Sparse,
    /// Texts become vectors of tokens: [`Model::embed_tokens`], [`Model::rank`].
    Late,
}

/// Kinds of forms that an answer must fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormKind {
    /// A JSON schema.
    JsonSchema,
    /// A grammar as GBNF.
    Gbnf,
    /// A regular expression.
    Regex,
}

/// A form compiled for a model's vocabulary. Any number of sessions of that model share one.
pub struct Form {
    pub(crate) handle: *mut ffi::fovea_host_form,
    pub(crate) model: Arc<Handle>,
}

// SAFETY: the library lets any number of threads use a model's forms.
unsafe impl Send for Form {}
unsafe impl Sync for Form {}

impl Drop for Form {
    fn drop(&mut self) {
        // SAFETY: made by the library, given back once.
        unsafe { ffi::fovea_host_free_form(self.handle) }
    }
}

fn c_path(path: &Path) -> Result<CString> {
    let text = path.to_str().ok_or_else(|| Error::argument(format!("{}: expected a path in UTF-8", path.display())))?;
    c_text(text, "path")
}

type Progress<'a> = dyn FnMut(u64, u64) -> bool + 'a;

unsafe extern "C" fn advance(context: *mut c_void, done: u64, total: u64) -> c_int {
    // SAFETY: `context` is the callback that `open_with_progress` has lent.
    unsafe { Callback::<Progress>::run(context, |progress| progress(done, total)) }
}

impl Model {
    /// Opens a Fovea file, or a source (a Hugging Face folder, a GGUF or .safetensors file), which is converted once into the
    /// user's cache folder.
    pub fn open(path: impl AsRef<Path>) -> Result<Model> {
        Model::open_with(path, &OpenOptions::default())
    }

    /// The same with options.
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Model> {
        Model::open_with_progress(path, options, |_, _| true)
    }

    /// The same. While a source is converted, `progress` gets pieces done and to do, and ends the conversion by false: the error is
    /// then [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), and no file is left.
    pub fn open_with_progress(
        path: impl AsRef<Path>, options: &OpenOptions, mut progress: impl FnMut(u64, u64) -> bool,
    ) -> Result<Model> {
        let progress: &mut Progress = &mut progress;
        let mut callback = Callback::new(progress);
        let path = c_path(path.as_ref())?;
        let names = options.adapters.iter().map(|(path, _)| c_path(path)).collect::<Result<Vec<_>>>()?;
        let pairs = names.iter().zip(&options.adapters);
        let adapters: Vec<_> =
            pairs.map(|(name, (_, scale))| ffi::fovea_host_adapter { path: name.as_ptr(), scale: *scale }).collect();
        let asked = ffi::fovea_host_open_options {
            verify: options.verify.into(),
            progress: Some(advance),
            context: callback.context(),
            adapters: adapters.as_ptr(),
            n_adapters: adapters.len(),
            ..Default::default()
        };
        let mut model = ptr::null_mut();
        // SAFETY: all that `asked` points to lives until the call returns.
        let code = unsafe { ffi::fovea_host_open(path.as_ptr(), &asked, &mut model) };
        callback.end();
        check(code)?;
        Ok(Model(Arc::new(Handle { model, n_adapters: adapters.len() })))
    }

    pub(crate) fn handle(&self) -> *mut ffi::fovea_host_model {
        self.0.model
    }

    /// What it is for.
    pub fn kind(&self) -> Kind {
        // SAFETY: the handle is open.
        match unsafe { ffi::fovea_host_kind(self.handle()) } {
            0 => Kind::Text,
            1 => Kind::Vectors,
            2 => Kind::Classes,
            3 => Kind::Speech,
            4 => Kind::Translation,
            6 => Kind::Findings,
            7 => Kind::Sparse,
            8 => Kind::Late,
            _ => Kind::Other,
        }
    }

    /// A value of the file's metadata, such as "chat_template".
    pub fn metadata(&self, key: &str) -> Result<Option<String>> {
        let key = c_text(key, "key")?;
        let mut value = Given::none();
        // SAFETY: the handle is open; the text is given back by `value`.
        check(unsafe { ffi::fovea_host_metadata(self.handle(), key.as_ptr(), &mut value.0) })?;
        // SAFETY: NULL or a text.
        Ok((!value.0.is_null()).then(|| unsafe { text_of(value.0) }))
    }

    /// The ids of a text. add_special: with the tokens that the model wants around a text. parse_special: "<|name|>" in it is
    /// that token.
    pub fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<u32>> {
        let text = c_text(text, "text")?;
        let how = if add_special { 0 } else { ffi::NO_SPECIAL } | if parse_special { ffi::READ_SPECIAL } else { 0 };
        let (mut tokens, mut n) = (Given::none(), 0);
        // SAFETY: the handle is open; the tokens are given back by `tokens`.
        check(unsafe { ffi::fovea_host_tokenize(self.handle(), text.as_ptr(), how, &mut tokens.0, &mut n) })?;
        // SAFETY: there are so many.
        Ok(unsafe { tokens.values(n) }.to_vec())
    }

    /// The text of tokens.
    pub fn detokenize(&self, tokens: &[u32], show_special: bool) -> Result<String> {
        let mut text = Given::none();
        let shown = c_int::from(show_special);
        // SAFETY: the handle is open; the text is given back by `text`.
        check(unsafe { ffi::fovea_host_detokenize(self.handle(), tokens.as_ptr(), tokens.len(), shown, &mut text.0) })?;
        // SAFETY: a text.
        Ok(unsafe { text_of(text.0) })
    }

    /// Compiles a form of answers.
    pub fn form(&self, kind: FormKind, text: &str) -> Result<Form> {
        let text = c_text(text, "form")?;
        let mut handle = ptr::null_mut();
        // SAFETY: the handle is open, and the form holds it.
        check(unsafe { ffi::fovea_host_compile_form(self.handle(), kind as u32, text.as_ptr(), &mut handle) })?;
        Ok(Form { handle, model: self.0.clone() })
    }

    /// Exactly the bytes that [`Model::session`] takes, before any are taken.
    pub fn session_bytes(&self, limits: &Limits) -> Result<u64> {
        let mut bytes = 0;
        // SAFETY: the handle is open.
        limits.with(|limits| check(unsafe { ffi::fovea_host_session_bytes(self.handle(), limits, &mut bytes) }))?;
        Ok(bytes)
    }

    /// A text's memory, taken once: no call takes more for it.
    pub fn session(&self, limits: &Limits) -> Result<Session> {
        Session::new(self, limits)
    }

    /// The memory for translating.
    pub fn translator(&self, options: &crate::TranslateOptions) -> Result<Translator> {
        Translator::new(self, options)
    }

    /// The memory for transcribing.
    pub fn transcriber(&self, options: &crate::SpeechOptions) -> Result<Transcriber> {
        Transcriber::new(self, options)
    }
}
