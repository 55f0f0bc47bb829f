/// What becomes of a file that is in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays; what was offered is refused.
    #[default]
    Refuse,
    /// It is replaced, when the new one is complete.
    Replace,
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
}

impl Default for Permitted {
    /// Nothing is replaced; a million files, and whatever the disk holds.
    fn default() -> Self {
        Self { existing: Existing::Refuse, bytes: u64::MAX, entries: 1_000_000 }
    }
}
