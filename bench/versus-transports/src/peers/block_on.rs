//! Futures on the thread that calls.

use crate::peer::Failure;
use std::future::Future;

/// Runs a future on this thread: sockets belong to the namespace of the thread that opens them.
pub(super) fn block_on<T>(what: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(what)
}
