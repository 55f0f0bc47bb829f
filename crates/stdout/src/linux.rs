//! The test on Linux: a function in the section `.init_array`.
#![allow(
    unsafe_code,
    reason = "the loader calls the function; the standard library has nothing that runs as early"
)]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

pub(crate) fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

// SAFETY: the loader calls each function of this section once, on one thread. This one makes a system call that changes
// nothing, and sets a flag. It ignores the arguments that some C libraries pass, as the C calling convention permits.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = test_stdout;

extern "C" fn test_stdout() {
    // SAFETY: a number that is no open descriptor is answered by an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags < 0, Ordering::Relaxed);
}
