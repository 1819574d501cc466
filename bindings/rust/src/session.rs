use crate::callback::Callback;
use crate::error::{c_text, check, check_status, slice_of, text_of, Error, Given, Result};
use crate::ffi;
use crate::generation::{Finish, GenerateOptions, Generated, Limits};
use crate::model::{Form, Handle, Model};
use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

/// A text's memory: its keys and values, and the generator that goes on with it.
pub struct Session {
    handle: *mut ffi::fovea_host_session,
    model: Arc<Handle>,
    draft: Option<Arc<Handle>>,
}

// SAFETY: one thread at a time may use it, whichever; methods that compute want it exclusively.
unsafe impl Send for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: made by the library, given back once, before its model and draft.
        unsafe { ffi::fovea_host_end(self.handle) }
    }
}

/// What somebody said in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// "system", "user", "assistant", or what the model's template knows beside.
    pub role: String,
    /// The words.
    pub content: String,
}

impl Message {
    /// A message of some role.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Message { role: role.into(), content: content.into() }
    }
    /// What the user says.
    pub fn user(content: impl Into<String>) -> Self {
        Message::new("user", content)
    }
    /// What the model said.
    pub fn assistant(content: impl Into<String>) -> Self {
        Message::new("assistant", content)
    }
    /// How the model shall be.
    pub fn system(content: impl Into<String>) -> Self {
        Message::new("system", content)
    }
}

/// What a chat template is told beside the messages.
#[derive(Clone, Debug, Default)]
pub struct ChatOptions {
    /// The prompt does not begin the model's answer.
    pub no_answer: bool,
    /// A JSON array of tools, as OpenAI's API has them.
    pub tools: Option<String>,
    /// A JSON object of more variables.
    pub extra: Option<String>,
}

fn add_json(text: &str, json: &mut String) {
    json.push('"');
    for each in text.chars() {
        match each {
            '"' | '\\' => json.extend(['\\', each]),
            '\0'..='\x1f' => json.push_str(&format!("\\u{:04x}", u32::from(each))),
            _ => json.push(each),
        }
    }
    json.push('"');
}

fn json_of(messages: &[Message]) -> String {
    let mut json = String::from("[");
    for (i, message) in messages.iter().enumerate() {
        json.push_str(if i == 0 { "{\"role\": " } else { ", {\"role\": " });
        add_json(&message.role, &mut json);
        json.push_str(", \"content\": ");
        add_json(&message.content, &mut json);
        json.push('}');
    }
    json.push(']');
    json
}

impl ChatOptions {
    fn with<T>(&self, call: impl FnOnce(*const ffi::fovea_host_chat_options) -> Result<T>) -> Result<T> {
        let texts = [(&self.tools, "tools"), (&self.extra, "extra")];
        let [tools, extra]: [Result<Option<CString>>; 2] =
            texts.map(|(text, name)| text.as_deref().map(|text| c_text(text, name)).transpose());
        let (tools, extra) = (tools?, extra?);
        call(&ffi::fovea_host_chat_options {
            no_answer: self.no_answer.into(),
            tools: tools.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            extra: extra.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            ..Default::default()
        })
    }
}

impl Model {
    /// The prompt that the model's chat template makes of messages. Whoever tokenizes it with parse_special reads special tokens
    /// in messages too, as [`Session::chat`] does not.
    pub fn render_chat(&self, messages: &[Message], options: &ChatOptions) -> Result<String> {
        let messages = c_text(&json_of(messages), "messages")?;
        let mut prompt = Given::none();
        // SAFETY: the handle is open; the text is given back by `prompt`.
        options.with(|how| check(unsafe { ffi::fovea_host_render_chat(self.handle(), messages.as_ptr(), how, &mut prompt.0) }))?;
        // SAFETY: a text.
        Ok(unsafe { text_of(prompt.0) })
    }
}

type OnText<'a> = dyn FnMut(&str) -> bool + 'a;

unsafe extern "C" fn hear(context: *mut c_void, text: *const c_char) -> c_int {
    // SAFETY: `context` is the callback that `run` has lent, `text` a text that a zero ends.
    unsafe { Callback::<OnText>::run(context, |on_text| on_text(&CStr::from_ptr(text).to_string_lossy())) }
}

impl Session {
    pub(crate) fn new(model: &Model, limits: &Limits) -> Result<Session> {
        let mut handle = ptr::null_mut();
        // SAFETY: the model is open, and the session holds it.
        limits.with(|limits| check(unsafe { ffi::fovea_host_start(model.handle(), limits, &mut handle) }))?;
        Ok(Session { handle, model: model.0.clone(), draft: None })
    }

    fn form_of(&self, form: Option<&Form>) -> Result<*const ffi::fovea_host_form> {
        match form {
            Some(form) if !Arc::ptr_eq(&form.model, &self.model) => {
                Err(Error::argument("form: expected one of the session's model, got another model's".into()))
            }
            form => Ok(form.map_or(ptr::null(), |form| form.handle as *const _)),
        }
    }

    fn run(&mut self, on_text: &mut OnText, call: impl FnOnce(ffi::OnText, *mut c_void) -> c_int) -> Result<Generated> {
        let mut callback = Callback::new(on_text);
        let code = call(Some(hear), callback.context());
        callback.end();
        if code != ffi::CANCELLED {
            check(code)?;
        }
        let mut figures = ffi::fovea_generate_figures::default();
        // SAFETY: the session is open, and so is its generator.
        let (status, finish) = unsafe {
            let generator = ffi::fovea_host_generator(self.handle);
            (ffi::fovea_generator_figures(generator, &mut figures), ffi::fovea_generator_finish(generator))
        };
        check_status(status)?;
        let finish = match finish {
            1 => Finish::EndToken,
            2 => Finish::StopText,
            3 => Finish::Length,
            4 => Finish::Context,
            _ => Finish::Caller,
        };
        Ok(Generated {
            finish,
            n_prompt: figures.n_prompt,
            n_kept: figures.n_kept,
            n_tokens: figures.n_tokens,
            n_passes: figures.n_passes,
            n_proposed: figures.n_proposed,
            n_accepted: figures.n_accepted,
        })
    }

    /// Goes on after tokens. Each new piece of text goes to `on_text`, which ends the text by false. The beginning of the tokens
    /// that the session still holds is not computed again.
    pub fn generate(
        &mut self, tokens: &[u32], options: &GenerateOptions, form: Option<&Form>, mut on_text: impl FnMut(&str) -> bool,
    ) -> Result<Generated> {
        let (handle, form) = (self.handle, self.form_of(form)?);
        options.with(|options| {
            // SAFETY: the session is open and lent exclusively; all that is pointed to lives until the call returns.
            self.run(&mut on_text, |hear, context| unsafe {
                ffi::fovea_host_generate(handle, tokens.as_ptr(), tokens.len(), options, form, hear, context)
            })
        })
    }

    /// The model's answer to a conversation, by its own template.
    pub fn chat(
        &mut self, messages: &[Message], options: &GenerateOptions, form: Option<&Form>, on_text: impl FnMut(&str) -> bool,
    ) -> Result<Generated> {
        self.chat_with(messages, &ChatOptions::default(), options, form, on_text)
    }

    /// The same with options for the template.
    pub fn chat_with(
        &mut self, messages: &[Message], how: &ChatOptions, options: &GenerateOptions, form: Option<&Form>,
        mut on_text: impl FnMut(&str) -> bool,
    ) -> Result<Generated> {
        let (handle, form) = (self.handle, self.form_of(form)?);
        let messages = c_text(&json_of(messages), "messages")?;
        how.with(|how| {
            options.with(|options| {
                // SAFETY: as in generate.
                self.run(&mut on_text, |hear, context| unsafe {
                    ffi::fovea_host_chat(handle, messages.as_ptr(), how, options, form, hear, context)
                })
            })
        })
    }

    /// Other scales, one for each of the model's adapters, for the texts that follow. What the session held is forgotten.
    pub fn scale_adapters(&mut self, scales: &[f32]) -> Result<()> {
        let wanted = self.model.n_adapters;
        if scales.len() != wanted {
            return Err(Error::argument(format!("scales: expected {wanted}, got {}", scales.len())));
        }
        // SAFETY: the session is open, and there is one for each adapter.
        check(unsafe { ffi::fovea_host_scale_adapters(self.handle, scales.as_ptr()) })
    }

    /// From here on `draft` proposes tokens: a smaller model with the same tokens, or the model's next-token head. Texts are those
    /// without it, in every bit. n_proposed: tokens of a pass at most, 0: 8. What the session holds stays.
    pub fn propose_by(&mut self, draft: &Model, n_proposed: u32) -> Result<()> {
        // SAFETY: the session is open and lent exclusively, and holds the draft from here on.
        check(unsafe { ffi::fovea_host_propose_by(self.handle, draft.handle(), n_proposed) })?;
        self.draft = Some(draft.0.clone());
        Ok(())
    }

    /// What the session holds, with its text's tokens: as a file it is one of `fovea run --session`, and the reverse.
    pub fn save(&self) -> Result<Vec<u8>> {
        let (mut saved, mut n) = (Given::none(), 0);
        // SAFETY: the session is open; the bytes are given back by `saved`.
        check(unsafe { ffi::fovea_host_save(self.handle, &mut saved.0, &mut n) })?;
        // SAFETY: there are so many.
        Ok(unsafe { slice_of(saved.0.cast::<u8>(), n) }.to_vec())
    }

    /// The session holds what another one did, of the same model, cache type and adapters: a text that begins alike is not computed
    /// again, on any machine. Any bytes may be given; whether they are such is checked.
    pub fn restore(&mut self, saved: &[u8]) -> Result<()> {
        // SAFETY: the session is open and lent exclusively.
        check(unsafe { ffi::fovea_host_restore(self.handle, saved.as_ptr().cast(), saved.len()) })
    }
}
