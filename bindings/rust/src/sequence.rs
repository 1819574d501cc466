use crate::error::{check_status, slice_of, Result};
use crate::ffi;
use crate::generation::Limits;
use crate::model::{Handle, Model};
use std::alloc::{alloc, dealloc, handle_alloc_error, Layout};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// One sequence of tokens by the engine alone, without text: logits after every token, in one arena whose exact size is known
/// before it is taken. Nothing allocates afterwards.
pub struct Sequence {
    session: *mut ffi::fovea_session,
    vocab_size: usize,
    arena: NonNull<u8>,
    layout: Layout,
    _model: Arc<Handle>,
}

// SAFETY: one thread at a time may use it, whichever.
unsafe impl Send for Sequence {}

impl Drop for Sequence {
    fn drop(&mut self) {
        // SAFETY: taken with this layout; a session has no destructor.
        unsafe { dealloc(self.arena.as_ptr(), self.layout) }
    }
}

fn plan(model: &Model, limits: *const ffi::fovea_limits) -> Result<ffi::fovea_plan> {
    let mut plan = ffi::fovea_plan::default();
    // SAFETY: the model is open.
    check_status(unsafe { ffi::fovea_plan_session(ffi::fovea_host_engine_model(model.handle()), limits, &mut plan) })?;
    Ok(plan)
}

impl Model {
    /// Exactly the bytes that [`Model::sequence`] takes, the same on every machine.
    pub fn sequence_bytes(&self, limits: &Limits) -> Result<u64> {
        limits.with(|limits| Ok(plan(self, limits)?.arena_bytes))
    }

    /// A sequence of tokens, for a model that gives logits.
    pub fn sequence(&self, limits: &Limits) -> Result<Sequence> {
        limits.with(|limits| {
            let plan = plan(self, limits)?;
            let layout = Layout::from_size_align(plan.arena_bytes as usize, 64).expect("a plan that fits this machine");
            // SAFETY: no arena is empty.
            let arena = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
            let vocab_size = plan.vocab_size as usize;
            let mut made =
                Sequence { session: ptr::null_mut(), vocab_size, arena, layout, _model: self.0.clone() };
            // SAFETY: the arena is as long and aligned as the plan wants; it and the model live as long as the session.
            check_status(unsafe {
                let model = ffi::fovea_host_engine_model(self.handle());
                ffi::fovea_make_session_of(model, limits, arena.as_ptr().cast(), layout.size(), &mut made.session)
            })?;
            Ok(made)
        })
    }
}

impl Sequence {
    /// Appends tokens and returns the logits that follow the last, unnormalised.
    pub fn forward(&mut self, tokens: &[u32]) -> Result<&[f32]> {
        // SAFETY: the session is made and lent exclusively; its logits stay until the next call.
        unsafe {
            check_status(ffi::fovea_forward(self.session, tokens.as_ptr(), tokens.len()))?;
            Ok(slice_of(ffi::fovea_logits(self.session), self.vocab_size))
        }
    }

    /// Whether no token is cached.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many tokens are cached.
    pub fn len(&self) -> usize {
        // SAFETY: the session is made.
        unsafe { ffi::fovea_kv_len(self.session) as usize }
    }

    /// Forgets tokens from the end, and returns how many stay: `len`, or fewer if the model has recurrent layers.
    pub fn rewind(&mut self, len: usize) -> Result<usize> {
        let mut reached = 0;
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        // SAFETY: the session is made.
        check_status(unsafe { ffi::fovea_rewind(self.session, len, &mut reached) })?;
        Ok(reached as usize)
    }

    /// What is cached, as bytes that fit every machine.
    pub fn save(&self) -> Result<Vec<u8>> {
        let mut written = 0;
        // SAFETY: the session is made, and its cache is what it is until somebody has the session exclusively.
        unsafe {
            let cache = ffi::fovea_session_cache(self.session);
            let mut saved = vec![0; ffi::fovea_cache_bytes(&cache) as usize];
            check_status(ffi::fovea_save_cache(&cache, saved.as_mut_ptr().cast(), saved.len(), &mut written))?;
            Ok(saved)
        }
    }

    /// Caches what another sequence of the same model and cache type did. Any bytes may be given; whether they are such is checked
    /// before anything changes.
    pub fn restore(&mut self, saved: &[u8]) -> Result<()> {
        // SAFETY: the session is made and lent exclusively.
        unsafe {
            let cache = ffi::fovea_session_cache(self.session);
            check_status(ffi::fovea_restore_cache(&cache, saved.as_ptr().cast(), saved.len()))
        }
    }
}
