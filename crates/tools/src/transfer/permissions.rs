//! Permissions of a receiver: existing files, origin of the sender, quota.

/// Treatment of an existing file with the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It is kept; the offer is rejected.
    #[default]
    Refuse,
    /// It is replaced when the new one is complete.
    Replace,
}

/// Relation of a sender to the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A sender with an unknown key. [Odd names](super::OddName) are rejected, and execute permission is removed, so that
    /// it can store neither a start-up file nor a program.
    #[default]
    Unknown,
    /// A sender that has proved to have a key that the receiver knows.
    Known,
}

/// Limits and rules of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Treatment of existing files.
    pub existing: Existing,
    /// Maximum bytes of all files of a conversation.
    pub bytes: u64,
    /// Maximum number of files and directories of a conversation.
    pub entries: u64,
    /// Relation of the sender to the receiver: known or not.
    pub origin: Origin,
}

impl Origin {
    /// Returns the permission bits of a stored file: no write permission for group and other users.
    pub(super) const fn mode(self, offered: u16) -> u16 {
        match self {
            Self::Unknown => offered & 0o644,
            Self::Known => offered & 0o755,
        }
    }
}

impl Default for Permissions {
    /// Replaces nothing; at most a million files, without a limit of bytes; unknown sender.
    fn default() -> Self {
        Self { existing: Existing::Refuse, bytes: u64::MAX, entries: 1_000_000, origin: Origin::Unknown }
    }
}
