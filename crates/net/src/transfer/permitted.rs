/// What becomes of a file that is in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays; what was offered is refused.
    #[default]
    Refuse,
    /// It is replaced, when the new one is complete.
    Replace,
}

/// Relation of a sender to the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A sender whose key is not known. [Odd names](super::Oddity) are refused, and execute permission is removed: neither
    /// a start-up file nor a program comes from a stranger.
    #[default]
    Stranger,
    /// A sender that has proved to have a key that the receiver knows.
    Known,
}

/// What a receiver may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permitted {
    /// What becomes of files that are in the way.
    pub existing: Existing,
    /// Bytes of all files of a conversation together.
    pub bytes: u64,
    /// Files and directories of a conversation.
    pub entries: u64,
    /// Origin of the sender: known to the receiver, or not.
    pub origin: Origin,
}

impl Origin {
    /// Permission bits of what is stored: no write permission for group and others.
    pub(super) const fn mode(self, offered: u16) -> u16 {
        match self {
            Self::Stranger => offered & 0o644,
            Self::Known => offered & 0o755,
        }
    }
}

impl Default for Permitted {
    /// Nothing is replaced; a million files, and whatever the disk holds; the sender is a stranger.
    fn default() -> Self {
        Self { existing: Existing::Refuse, bytes: u64::MAX, entries: 1_000_000, origin: Origin::Stranger }
    }
}
