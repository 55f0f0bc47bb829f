//! Origin of a claim.

/// Origin of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The paper makes it, and its scenario is read as everywhere.
    #[default]
    Paper,
    /// The paper makes it, and a parameter here was fitted to it.
    Fitted,
    /// The paper makes it; another claim counts the same measurement.
    Repeated,
    /// The paper makes it; an open question is answered differently than elsewhere.
    Reading,
    /// The paper does not make it.
    Own,
}

impl Kind {
    /// The words of the key `kind`.
    pub(super) const WORDS: [&str; 5] = ["paper", "fitted", "repeated", "reading", "ours"];

    /// Returns the kind of this key's value.
    pub(super) fn of(word: Option<&str>) -> Self {
        match word {
            Some("fitted") => Self::Fitted,
            Some("repeated") => Self::Repeated,
            Some("reading") => Self::Reading,
            Some("ours") => Self::Own,
            _ => Self::Paper,
        }
    }

    /// Returns the value as the key is written.
    #[must_use]
    pub const fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}
