//! Signal mask of threads of the library.

use std::ptr;

/// Calls `make` with all signals blocked. Threads that it starts inherit the mask, so that signals go to threads of the
/// program.
pub(crate) fn without_signals<T>(make: impl FnOnce() -> T) -> T {
    /// Restores the signal mask of the thread, also after a panic.
    struct RestoreSignals(libc::sigset_t);
    impl Drop for RestoreSignals {
        fn drop(&mut self) {
            // SAFETY: the set is the one that the system gave.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
        }
    }
    // SAFETY: a structure of numbers, for which all zeros are a value.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a set.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: both pointers are to sets, of which one is read and one is written.
    let done = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before) };
    let _restore = (done == 0).then(|| RestoreSignals(before));
    make()
}
