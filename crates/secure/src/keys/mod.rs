//! Keys, and how people write them down.
//!
//! A key is 32 bytes, written as 64 hexadecimal digits. The prefix `public:` or `private:` gives its kind, so
//! that a user does not hand out the wrong one. The reader of the files makes sure that no other user may
//! write to them, and, for private and shared keys, that no other user may read them.

mod file;
mod key;
mod key_file_error;
mod peers;

pub use file::{FileKind, private_key, private_key_file, secret, shared_key};
pub use key::{Fingerprint, KEY_LEN, NoFingerprint, PRIVATE, PUBLIC, PreSharedKey, PrivateKey, PublicKey};
pub use key_file_error::{KeyFileError, Visibility};
pub use peers::{Check, KnownPeers, MAX_NAME, Name, Peer, UnusableName};

#[cfg(test)]
mod tests;
