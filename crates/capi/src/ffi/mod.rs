//! Functions of the C interface, and all `unsafe` code of the crate.
//!
//! No function unwinds: a panic is caught here and becomes `EIO`. Every pointer is checked before it is used. The caller
//! guarantees that it points to as many bytes as it says, and that no other thread accesses them during the call.

#![allow(unsafe_code, reason = "callers are C")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the module says it for all: pointers must be to what they say they are"
)]

mod memory;
pub(crate) mod signals;

use self::memory::{Address, address, bytes, bytes_mut, store_address, write};
use crate::abi::{TPA_SHUT_RD, TPA_SHUT_RDWR, TPA_SHUT_WR, tpa_info, tpa_pollfd};
use crate::error::{self, Error, Result};
use crate::options::{Value, option};
use crate::readiness;
use crate::report::connection_info;
use crate::socket::{CloseMode, Socket};
use crate::table;
use libc::{c_char, c_int, c_void, sockaddr, socklen_t, ssize_t};
use std::ffi::CStr;
use std::net::Shutdown;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::time::Duration;

/// Size of the oldest structure that tpa_info fills in: its first three fields, bytes.
const MIN_INFO_SIZE: usize = 16;

/// Creates a socket for one connection, or for listening. Its protocol is TPA-wide unless TPA_PROTOCOL is set. Returns its
/// handle, or -1.
///
/// The handle is a file descriptor that poll, select or epoll can wait for, for reading only. No other use is allowed; only
/// tpa_close and tpa_abort close it. It is readable
/// - while there is something to receive: data, the end of the stream, an error, or a connection to accept;
/// - once a connection that tpa_connect has begun is open or has failed, until a call has reported it;
/// - once there is room after a tpa_send that accepted less than it was given, until tpa_send is tried again.
///
/// Handles are for all threads: one may receive while another sends. They are not valid in the child after a fork.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_socket() -> c_int {
    catch_panic("tpa_socket", -1, || Socket::new().map(table::insert))
}

/// Sets an option, an enum tpa_option, to the `len` bytes at `value`. Files are read at once. Returns 0, or -1: EINVAL for
/// an invalid value, ENOPROTOOPT for an unknown option, or the error of reading a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_setsockopt(
    handle: c_int,
    option_number: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    catch_panic("tpa_setsockopt", -1, || {
        let socket = table::get(handle)?;
        // SAFETY: the caller says that `value` points to `len` bytes.
        let value = unsafe { bytes(value, len as usize) }?;
        socket.set(option(option_number)?, value).map(|()| 0)
    })
}

/// Reads an option into `value`, which has room for `*len` bytes, and sets `*len` to the number of bytes written. Texts have
/// a final NUL. Returns 0, or -1: ENOENT for a text that is not set, EINVAL if there is not enough room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_getsockopt(
    handle: c_int,
    option_number: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    catch_panic("tpa_getsockopt", -1, || {
        let socket = table::get(handle)?;
        let option = option(option_number)?;
        // SAFETY: the caller says that `len` points to a number.
        let room = unsafe { memory::read(len) }?;
        // SAFETY: the caller says that `value` has room for that many bytes.
        let place = unsafe { bytes_mut(value, room as usize) }?;
        let bytes = match socket.get(option)? {
            Value::Number(number) => number.to_ne_bytes().to_vec(),
            Value::Text(text) => [text, vec![0]].concat(),
        };
        let Some(place) = place.get_mut(..bytes.len()) else {
            let what = format!("there is room for {room} bytes, and {} are to be written", bytes.len());
            return Err(Error::new(libc::EINVAL, what));
        };
        place.copy_from_slice(&bytes);
        // SAFETY: as above; what is written fits into the room that was said.
        unsafe { write(len, bytes.len() as socklen_t) }.map(|()| 0)
    })
}

/// Binds to an IPv4 or IPv6 address; with port 0 the system selects a free port. Returns 0, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_bind(handle: c_int, local: *const sockaddr, len: socklen_t) -> c_int {
    catch_panic("tpa_bind", -1, || {
        let socket = table::get(handle)?;
        // SAFETY: the caller says that `local` points to `len` bytes.
        let local = unsafe { address(local, len) }?;
        socket.bind(local).map(|()| 0)
    })
}

/// Accepts connections. At most `backlog` of them, at least 1, wait for tpa_accept; further peers get no answer and try
/// again. Returns 0, or -1: EACCES or ENOENT for keys that cannot be used.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_listen(handle: c_int, backlog: c_int) -> c_int {
    catch_panic("tpa_listen", -1, || {
        let backlog = usize::try_from(backlog).unwrap_or(0).max(1);
        table::get(handle)?.listen(backlog).map(|()| 0)
    })
}

/// Waits for the next connection, over TPA or TCP with TPA_PROTOCOL_TPA_OR_TCP. Returns its handle, with default options, or
/// -1. Writes the address of the peer to `peer`, which has room for `*len` bytes, and its length to `*len`. Both may be
/// NULL. tpa_info has the fingerprint of the peer's key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_accept(handle: c_int, peer: *mut sockaddr, len: *mut socklen_t) -> c_int {
    catch_panic("tpa_accept", -1, || {
        let socket = table::get(handle)?;
        if !peer.is_null() {
            // Checked before a connection is accepted, because afterwards its address could not be reported.
            // SAFETY: the caller says that `len` points to a number.
            unsafe { memory::read(len) }?;
        }
        let (accepted, from) = socket.accept()?;
        if !peer.is_null() {
            // SAFETY: the caller says that `peer` has room for `*len` bytes.
            unsafe { store_address(&Address::of(from), peer, len) }?;
        }
        Ok(table::insert(accepted))
    })
}

/// Connects to a peer, and waits until the peer is authenticated. Returns 0, or -1:
/// - EINPROGRESS: TPA_NONBLOCK is set. The handle becomes readable once the connection is open or has failed; TPA_ERROR has
///   the result;
/// - ECONNREFUSED: no socket has that port; or one end has a shared key and the other a private key; or the peer does not
///   know our key, which may be reported only by the first tpa_recv or tpa_send afterwards;
/// - ETIMEDOUT: no answer. No program listens, or, over TPA-wide, the shared keys differ;
/// - EACCES: the peer is unknown, or its key is not the expected one; tpa_last_error() has its fingerprint;
/// - EISCONN, EALREADY, EINVAL: the socket is connected, is being connected, or listens;
/// - EAFNOSUPPORT: the address is of neither family, or not of the family that the socket is bound to.
///
/// With TPA_PROTOCOL_TPA_OR_TCP it tries TPA and TCP at the same time. It selects TPA if the peer answers TPA within one
/// round trip after TCP, else TCP; tpa_info has the selected protocol. The program of the peer never sees the other attempt.
/// If both fail, the error of TCP is reported.
///
/// It can be tried again after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_connect(handle: c_int, peer: *const sockaddr, len: socklen_t) -> c_int {
    catch_panic("tpa_connect", -1, || {
        let socket = table::get(handle)?;
        // SAFETY: the caller says that `peer` points to `len` bytes.
        let peer = unsafe { address(peer, len) }?;
        socket.connect(peer).map(|()| 0)
    })
}

/// Sends data. Returns how many of the `len` bytes were accepted, or -1. All are, unless TPA_NONBLOCK is set, the time limit
/// is reached, or the connection fails after some. EPIPE after TPA_SHUT_WR; there is no SIGPIPE. Signals do not interrupt
/// it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_send(handle: c_int, data: *const c_void, len: usize, flags: c_int) -> ssize_t {
    catch_panic("tpa_send", -1, || {
        let socket = table::get(handle)?;
        no_flags(flags)?;
        // SAFETY: the caller says that `data` points to `len` bytes.
        let data = unsafe { bytes(data, len) }?;
        // A slice is never longer than the largest `isize`.
        socket.send(data).map(|sent| sent as ssize_t)
    })
}

/// Receives data; waits until there is at least one byte. Returns the number of bytes written to `buffer`, at most `len`; 0
/// at the end of the stream; or -1. Signals do not interrupt it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_recv(handle: c_int, buffer: *mut c_void, len: usize, flags: c_int) -> ssize_t {
    catch_panic("tpa_recv", -1, || {
        let socket = table::get(handle)?;
        no_flags(flags)?;
        // SAFETY: the caller says that `buffer` has room for `len` bytes.
        let buffer = unsafe { bytes_mut(buffer, len) }?;
        socket.receive(buffer).map(|received| received as ssize_t)
    })
}

/// Ends sending (TPA_SHUT_WR), receiving (TPA_SHUT_RD), or both (TPA_SHUT_RDWR). Does not wait. After TPA_SHUT_RD a thread
/// that waits in tpa_recv receives the end of the stream. Returns 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_shutdown(handle: c_int, how: c_int) -> c_int {
    catch_panic("tpa_shutdown", -1, || {
        let socket = table::get(handle)?;
        let how = match how {
            TPA_SHUT_RD => Shutdown::Read,
            TPA_SHUT_WR => Shutdown::Write,
            TPA_SHUT_RDWR => Shutdown::Both,
            _ => return Err(Error::new(libc::EINVAL, format!("{how} is nothing to shut down"))),
        };
        socket.shutdown(how).map(|()| 0)
    })
}

/// Ends sending, waits until the peer has received everything, and closes. The handle is invalid in any case. Returns 0, or
/// -1 if the peer may lack data: ETIMEDOUT after TPA_CLOSE_TIMEOUT, or the error of the connection.
///
/// It does not wait with TPA_NONBLOCK, nor if the peer has received everything and has ended its direction. Data sent before
/// still arrive if the program keeps running; a program that ends at once should wait.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_close(handle: c_int) -> c_int {
    catch_panic("tpa_close", -1, || table::remove(handle)?.end(CloseMode::Graceful).map(|()| 0))
}

/// Closes at once: sends a reset to the peer; data that it has not received are lost. Returns 0, or -1 with EBADF.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_abort(handle: c_int) -> c_int {
    catch_panic("tpa_abort", -1, || table::remove(handle)?.end(CloseMode::Abort).map(|()| 0))
}

/// Writes the address that the socket is bound to to `local`, which has room for `*len` bytes, and its length to `*len`.
/// Returns 0, or -1: EINVAL before it is bound.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_getsockname(handle: c_int, local: *mut sockaddr, len: *mut socklen_t) -> c_int {
    catch_panic("tpa_getsockname", -1, || {
        let found = table::get(handle)?.local()?;
        // SAFETY: the caller says that `local` has room for `*len` bytes.
        unsafe { store_address(&Address::of(found), local, len) }.map(|()| 0)
    })
}

/// Writes the validated address of the peer to `peer`, as tpa_getsockname. It can change if a NAT lies between. Returns 0,
/// or -1: ENOTCONN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_getpeername(handle: c_int, peer: *mut sockaddr, len: *mut socklen_t) -> c_int {
    catch_panic("tpa_getpeername", -1, || {
        let found = table::get(handle)?.peer()?;
        // SAFETY: the caller says that `peer` has room for `*len` bytes.
        unsafe { store_address(&Address::of(found), peer, len) }.map(|()| 0)
    })
}

/// Fills in the state and counters of the connection, and the fingerprint of the peer. `info->size` is the room before the
/// call. Returns 0, or -1: ENOTCONN, EINVAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_info(handle: c_int, info: *mut tpa_info) -> c_int {
    catch_panic("tpa_info", -1, || {
        let socket = table::get(handle)?;
        // SAFETY: the caller says that `info` begins with a size.
        let room = unsafe { memory::read(info.cast::<usize>()) }?;
        if room < MIN_INFO_SIZE {
            let what = format!("info->size is {room}, and not sizeof(struct tpa_info)");
            return Err(Error::new(libc::EINVAL, what));
        }
        let size = room.min(size_of::<tpa_info>());
        let told = connection_info(&socket.info()?, size);
        // SAFETY: the caller says that there is room for `size` bytes, and `told` has as many; it has no pointers.
        unsafe { ptr::copy_nonoverlapping((&raw const told).cast::<u8>(), info.cast::<u8>(), size) };
        Ok(0)
    })
}

/// Waits until one of `count` handles is ready, for at most `timeout_ms`; -1: without limit, 0: does not wait. Returns the
/// number of ready handles, 0 at the time limit, or -1: EINTR by a signal. A connection that has ended and has nothing left
/// to receive has TPA_POLLHUP.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_poll(handles: *mut tpa_pollfd, count: usize, timeout_ms: c_int) -> c_int {
    catch_panic("tpa_poll", -1, || {
        // SAFETY: the caller says that `handles` points to `count` structures.
        let handles = unsafe { memory::array_mut(handles, count) }?;
        let limit = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        let ready = readiness::wait(handles, limit)?;
        Ok(c_int::try_from(ready).unwrap_or(c_int::MAX))
    })
}

/// Returns the message of the last failed call of this thread, with what would be right: "tpa_connect: …". Empty if none
/// failed. The text is valid until the next call of this thread that fails.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_last_error() -> *const c_char {
    const NOTHING: &CStr = c"";
    error::with_last_error(CStr::as_ptr).unwrap_or(NOTHING.as_ptr())
}

/// Returns the version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn tpa_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Returns the result of `body`; on an error or panic sets `errno` and the last error, and returns `failed`.
fn catch_panic<T>(function: &'static str, failed: T, body: impl FnOnce() -> Result<T>) -> T {
    // State left half-changed by a panic is behind locks, and their poison is checked.
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        Err(Error::new(
            libc::EIO,
            "a mistake in hopline itself; what it printed to standard error says where",
        ))
    });
    result.unwrap_or_else(|error| {
        error.remember(function);
        set_errno(error.errno);
        failed
    })
}

fn set_errno(errno: c_int) {
    // SAFETY: it returns the address of the thread's own `errno`.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: `errno` belongs to this thread alone.
    unsafe { *place = errno };
}

fn no_flags(flags: c_int) -> Result<()> {
    if flags == 0 {
        return Ok(());
    }
    Err(Error::new(libc::EINVAL, format!("there are no flags yet: {flags:#x} should be 0")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_does_not_cross_the_interface() {
        assert_eq!(catch_panic("tpa_recv", -1, || -> Result<c_int> { panic!("this is a test") }), -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EIO));
        let said = error::with_last_error(CStr::to_owned).unwrap().into_string().unwrap();
        assert!(said.starts_with("tpa_recv: a mistake in hopline itself"), "{said}");
    }

    #[test]
    fn the_oldest_structure_ends_at_a_field_boundary() {
        assert_eq!(std::mem::offset_of!(tpa_info, srtt_us), MIN_INFO_SIZE);
    }
}
