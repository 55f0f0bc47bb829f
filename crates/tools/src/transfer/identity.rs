//! Identity by which a receiver recognises the sender of an interrupted transfer.

use blake3::Hasher;
use hopline_linux::host_id;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Identifier of a sender: the same for the same user, host, source and name. It reveals none of them, and proves
/// nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SenderId(pub [u8; SenderId::LEN]);

impl SenderId {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Returns the identifier of the sender that sends `source` as `name`.
    #[must_use]
    pub fn of(source: &Path, name: &[u8]) -> Self {
        let whole = fs::canonicalize(source).unwrap_or_else(|_| source.to_owned());
        let user = rustix::process::getuid().as_raw().to_be_bytes();
        // If the host has no machine identifier, only users and paths distinguish senders.
        let [machine, host] = host_id::identity();
        let mut hasher = Hasher::new_derive_key("hopline 2026-11-23 who sends a file");
        for part in [&machine, &host, &user, whole.as_os_str().as_bytes(), name] as [&[u8]; 5] {
            hasher.update(&(part.len() as u64).to_be_bytes()).update(part);
        }
        Self(*hasher.finalize().as_bytes().first_chunk().expect("a hash has 32 bytes"))
    }
}

impl fmt::Debug for SenderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identifier_of_a_sender_depends_on_source_and_name() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("f");
        fs::write(&file, b"x").unwrap();
        let id = SenderId::of(&file, b"f");
        assert_eq!(id, SenderId::of(&place.path().join(".").join("f"), b"f"));
        assert_ne!(id, SenderId::of(&file, b"g"));
        assert_ne!(id, SenderId::of(place.path(), b"f"));
    }
}
