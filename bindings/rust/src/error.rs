use crate::ffi;
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::{c_char, c_int, c_void};

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file, a model or the system does not allow it.
    Failed,
    /// The caller's value cannot be taken.
    Argument,
    /// The system has no more memory.
    NoMemory,
    /// A callback ended it.
    Cancelled,
}

/// Why a call did nothing: one line, "expected X, got Y".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    line: String,
}

impl Error {
    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
    pub(crate) fn argument(line: String) -> Self {
        Error { kind: ErrorKind::Argument, line }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.line)
    }
}

impl std::error::Error for Error {}

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// The error of a call of fovea_host.h that this thread has made just now.
pub(crate) fn check(code: c_int) -> Result<()> {
    let kind = match code {
        ffi::OK => return Ok(()),
        ffi::ARGUMENT => ErrorKind::Argument,
        ffi::NO_MEMORY => ErrorKind::NoMemory,
        ffi::CANCELLED => ErrorKind::Cancelled,
        _ => ErrorKind::Failed,
    };
    // SAFETY: never NULL; the line stays until this thread's next failure.
    Err(Error { kind, line: unsafe { text_of(ffi::fovea_host_error()) } })
}

/// The error of a call of fovea.h.
pub(crate) fn check_status(status: ffi::fovea_status) -> Result<()> {
    if status.code == 0 {
        return Ok(());
    }
    let mut line = [0u8; 160];
    // SAFETY: the engine writes at most so many bytes, a zero among them.
    let n = unsafe { ffi::fovea_describe(status, line.as_mut_ptr().cast(), line.len()) };
    Err(Error { kind: ErrorKind::Failed, line: String::from_utf8_lossy(&line[..n]).into_owned() })
}

/// A text for C.
pub(crate) fn c_text(text: &str, what: &str) -> Result<CString> {
    CString::new(text).map_err(|error| Error::argument(format!("{what}: expected no zero byte, got one at {}", error.nul_position())))
}

/// A text that the library ends with a zero; empty for NULL.
///
/// # Safety
/// `text` is NULL or such a text.
pub(crate) unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Memory that the library gave away, which is given back at the end.
pub(crate) struct Given<T>(pub *mut T);

impl<T> Given<T> {
    pub fn none() -> Self {
        Given(std::ptr::null_mut())
    }
    /// # Safety
    /// It holds `n` values, or is NULL with n = 0.
    pub unsafe fn values(&self, n: usize) -> &[T] {
        // SAFETY: as the caller says.
        unsafe { slice_of(self.0, n) }
    }
}

impl<T> Drop for Given<T> {
    fn drop(&mut self) {
        // SAFETY: a result of the library's, or NULL; given back once.
        unsafe { ffi::fovea_host_free(self.0.cast::<c_void>()) }
    }
}

/// # Safety
/// `values` points to `n` values, or n is 0.
pub(crate) unsafe fn slice_of<'a, T>(values: *const T, n: usize) -> &'a [T] {
    if n == 0 {
        return &[];
    }
    // SAFETY: as the caller says.
    unsafe { std::slice::from_raw_parts(values, n) }
}
