//! Errors of calls: `errno` for programs, a message for people.

use libc::c_int;
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::fmt::Display;
use std::io::{self, ErrorKind};

/// Error of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Error {
    pub(crate) errno: c_int,
    pub(crate) message: String,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

impl Error {
    pub(crate) fn new(errno: c_int, message: impl Into<String>) -> Self {
        Self { errno, message: message.into() }
    }

    /// Returns the error with `what` before its message.
    pub(crate) fn with_context(self, what: impl Display) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    /// Stores the error as the last error of the thread, in `function`.
    pub(crate) fn remember(&self, function: &str) {
        // A message may contain words of a peer or a path. Control characters, which a terminal would interpret, and NUL,
        // which would end the text, are replaced.
        let text = format!("{function}: {}", self.message).replace(char::is_control, "\u{fffd}");
        // Fails only while the thread ends, when its storage no longer exists.
        let _ = LAST_ERROR.try_with(|last| last.replace(CString::new(text).unwrap_or_default()));
    }
}

/// Returns the result of `look` for the last error of the thread, if there was one.
pub(crate) fn with_last_error<T>(look: impl FnOnce(&CStr) -> T) -> Option<T> {
    LAST_ERROR.try_with(|last| look(&last.borrow())).ok()
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::new(errno(&error), error.to_string())
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}

fn errno(error: &io::Error) -> c_int {
    if let Some(errno) = error.raw_os_error() {
        return errno;
    }
    match error.kind() {
        ErrorKind::AddrInUse => libc::EADDRINUSE,
        ErrorKind::AddrNotAvailable => libc::EADDRNOTAVAIL,
        ErrorKind::BrokenPipe => libc::EPIPE,
        ErrorKind::ConnectionAborted => libc::ECONNABORTED,
        ErrorKind::ConnectionRefused => libc::ECONNREFUSED,
        ErrorKind::ConnectionReset => libc::ECONNRESET,
        ErrorKind::FileTooLarge => libc::EFBIG,
        ErrorKind::HostUnreachable => libc::EHOSTUNREACH,
        ErrorKind::InvalidData => libc::EPROTO,
        ErrorKind::InvalidInput => libc::EINVAL,
        ErrorKind::NetworkUnreachable => libc::ENETUNREACH,
        ErrorKind::NotConnected => libc::ENOTCONN,
        ErrorKind::NotFound => libc::ENOENT,
        ErrorKind::OutOfMemory => libc::ENOMEM,
        ErrorKind::PermissionDenied => libc::EACCES,
        ErrorKind::ResourceBusy => libc::ENOBUFS,
        ErrorKind::TimedOut => libc::ETIMEDOUT,
        ErrorKind::WouldBlock => libc::EAGAIN,
        _ => libc::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_errno_of_the_system_is_kept_and_other_errors_have_one() {
        let of = |error: io::Error| Error::from(error).errno;
        assert_eq!(of(io::Error::from_raw_os_error(libc::ENETDOWN)), libc::ENETDOWN);
        assert_eq!(of(io::Error::new(ErrorKind::TimedOut, "too late")), libc::ETIMEDOUT);
        assert_eq!(of(io::Error::other("whatever")), libc::EIO);
    }

    #[test]
    fn the_last_error_is_that_of_the_thread_and_printable() {
        Error::new(libc::EIO, "a\0b").remember("tpa_recv");
        assert_eq!(with_last_error(CStr::to_owned).unwrap().to_str().unwrap(), "tpa_recv: a\u{fffd}b");
        let elsewhere =
            std::thread::scope(|scope| scope.spawn(|| with_last_error(CStr::to_owned)).join().unwrap());
        assert_eq!(elsewhere.unwrap().to_bytes(), b"");
    }
}
