//! Detection of a standard output that was closed before the program started.
//!
//! Rust's runtime opens /dev/null in place of a closed descriptor before `main`. Everything that is printed then is lost
//! without an error, so the descriptor is tested earlier, while the loader initialises the program.

#[cfg(target_os = "linux")]
mod linux;

/// Returns whether this process was started with standard output closed. `false` on systems other than Linux, where it is
/// not known.
#[must_use]
pub fn was_closed() -> bool {
    #[cfg(target_os = "linux")]
    return linux::was_closed();
    #[cfg(not(target_os = "linux"))]
    false
}
