//! Table of handles: file descriptors of the system, as numbers for C.

use crate::error::{Error, Result};
use crate::socket::{CloseMode, Socket};
use libc::c_int;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

static SOCKETS: RwLock<BTreeMap<c_int, Arc<Socket>>> = RwLock::new(BTreeMap::new());

/// Inserts `socket` and returns its handle. The number is free: it is the socket's open descriptor.
pub(crate) fn insert(socket: Socket) -> c_int {
    let handle = socket.number();
    let mut sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(lost) = sockets.insert(handle, Arc::new(socket)) {
        drop(sockets);
        let _ = lost.end(CloseMode::Abort);
        // The program has closed the descriptor of an older socket directly. Dropping that socket would close the descriptor
        // that has the number now.
        std::mem::forget(lost);
    }
    handle
}

/// Returns the socket with this handle.
pub(crate) fn get(handle: c_int) -> Result<Arc<Socket>> {
    let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    sockets.get(&handle).cloned().ok_or_else(|| unknown(handle))
}

/// Removes the handle and returns its socket.
pub(crate) fn remove(handle: c_int) -> Result<Arc<Socket>> {
    let removed = SOCKETS.write().unwrap_or_else(PoisonError::into_inner).remove(&handle);
    removed.ok_or_else(|| unknown(handle))
}

fn unknown(handle: c_int) -> Error {
    Error::new(libc::EBADF, format!("{handle} is no handle of tpa_socket or tpa_accept, or was closed"))
}
