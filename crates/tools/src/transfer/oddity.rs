//! Names that receivers accept from known peers only.

use super::path::RelativePath;
use super::reason::Reason;
use crate::printable::is_unseen;

/// Names of Windows devices, without an extension; a digit follows those of the second list.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];

/// Peculiarity of a name that is rejected from unknown peers: programs or users mistake it for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Oddity {
    /// It begins with a dot.
    #[error("a name that begins with a dot")]
    Hidden,
    /// It begins with `-`.
    #[error("a name that begins with `-`, which programs take for an option")]
    Option,
    /// It contains an invisible character, or is not UTF-8.
    #[error("a name with characters that are not seen, or that is not UTF-8")]
    Unseen,
    /// It ends in a dot or a space, which Windows removes.
    #[error("a name that ends in a dot or a space")]
    Ending,
    /// A device in Windows.
    #[error("a name of a device in Windows")]
    Device,
}

impl Oddity {
    /// Returns the reason of a refusal.
    pub(super) const fn reason(self) -> Reason {
        match self {
            Self::Hidden => Reason::Hidden,
            Self::Option | Self::Unseen | Self::Ending | Self::Device => Reason::Path,
        }
    }

    fn of(name: &[u8]) -> Option<Self> {
        let Ok(text) = std::str::from_utf8(name) else { return Some(Self::Unseen) };
        // U+2024 looks like a dot.
        if text.starts_with(['.', '\u{2024}']) {
            return Some(Self::Hidden);
        }
        if text.starts_with('-') {
            return Some(Self::Option);
        }
        if text.chars().any(|c| c.is_control() || is_unseen(c)) {
            return Some(Self::Unseen);
        }
        if text.ends_with(['.', ' ']) {
            return Some(Self::Ending);
        }
        is_device(text).then_some(Self::Device)
    }
}

impl RelativePath {
    /// Returns the reason that unknown peers may not send this path, if there is one.
    #[must_use]
    pub fn oddity(&self) -> Option<Oddity> {
        self.names().find_map(Oddity::of)
    }
}

/// Returns whether a name is that of a Windows device: with any extension, in any case, and with superscript digits.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end_matches(' ').to_lowercase();
    let is_digit = |rest: &str| matches!(rest, "¹" | "²" | "³") || matches!(rest.as_bytes(), [b'0'..=b'9']);
    let has_number = |device: &&str| stem.strip_prefix(*device).is_some_and(is_digit);
    DEVICES.contains(&stem.as_str()) || NUMBERED_DEVICES.iter().any(has_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &[u8]) -> Option<Oddity> {
        RelativePath::parse(path).unwrap().oddity()
    }

    #[test]
    fn names_that_are_mistaken_are_odd_at_any_depth() {
        for (path, oddity) in [
            (b".ssh".as_slice(), Oddity::Hidden),
            (b"a/.b/c", Oddity::Hidden),
            ("\u{2024}ssh/x".as_bytes(), Oddity::Hidden),
            (b"-rf", Oddity::Option),
            (b"a/-rf/b", Oddity::Option),
            ("photo\u{202e}gpj.exe".as_bytes(), Oddity::Unseen),
            ("a\u{200b}b".as_bytes(), Oddity::Unseen),
            ("\u{e0001}".as_bytes(), Oddity::Unseen),
            (b"\xff\xfe", Oddity::Unseen),
            (b"\xc2\x85", Oddity::Unseen),
            (b"tail.", Oddity::Ending),
            (b"tail /x", Oddity::Ending),
            (b"...", Oddity::Hidden),
            (b"CON", Oddity::Device),
            (b"aux.txt", Oddity::Device),
            (b"a/Com1.tar.gz", Oddity::Device),
            ("lpt²".as_bytes(), Oddity::Device),
            (b"nul .x", Oddity::Device),
        ] {
            assert_eq!(of(path), Some(oddity), "{}", path.escape_ascii());
        }
    }

    #[test]
    fn other_names_are_taken_from_strangers() {
        for path in ["a", "a-b/c.d", "com", "com10", "console", "auxiliary.txt", " a", "naïve Ω 文 🙂", "a b"]
        {
            assert_eq!(of(path.as_bytes()), None, "{path}");
        }
    }
}
