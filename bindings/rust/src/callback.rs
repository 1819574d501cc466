use std::any::Any;
use std::os::raw::{c_int, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// A closure that C calls, and the panic that ended it: none goes through C.
pub(crate) struct Callback<'a, F: ?Sized> {
    closure: &'a mut F,
    panic: Option<Box<dyn Any + Send>>,
}

impl<'a, F: ?Sized> Callback<'a, F> {
    pub fn new(closure: &'a mut F) -> Self {
        Callback { closure, panic: None }
    }

    /// What C hands back.
    pub fn context(&mut self) -> *mut c_void {
        (self as *mut Self).cast()
    }

    /// Lets `call` use the closure, and tells C whether to end.
    ///
    /// # Safety
    /// `context` is [`Callback::context`] of such a one, which is lent to the call of C that is running.
    pub unsafe fn run(context: *mut c_void, call: impl FnOnce(&mut F) -> bool) -> c_int {
        // SAFETY: as the caller says.
        let own = unsafe { &mut *context.cast::<Self>() };
        match catch_unwind(AssertUnwindSafe(|| call(own.closure))) {
            Ok(goes_on) => c_int::from(!goes_on),
            Err(panic) => {
                own.panic = Some(panic);
                1
            }
        }
    }

    /// Panics as the closure did, if it did.
    pub fn end(self) {
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
    }
}
