//! Names that receivers accept from known peers only.

use super::path::RelativePath;
use super::reason::Reason;
use crate::printable::is_invisible;

/// Names of Windows devices, without an extension; a digit follows those of the second list.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];

/// Peculiarity of a name that is rejected from unknown peers: programs or users mistake it for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OddName {
    /// It begins with a dot.
    #[error("a name that begins with a dot")]
    Hidden,
    /// It begins with `-`.
    #[error("a name that begins with `-`, which programs take for an option")]
    Option,
    /// It contains an invisible character, or is not UTF-8.
    #[error("a name with characters that are not seen, or that is not UTF-8")]
    Invisible,
    /// It ends in a dot or a space, which Windows removes.
    #[error("a name that ends in a dot or a space")]
    TrailingDotOrSpace,
    /// A device in Windows.
    #[error("a name of a device in Windows")]
    Device,
}

impl OddName {
    /// Returns the reason of a refusal.
    pub(super) const fn reason(self) -> Reason {
        match self {
            Self::Hidden => Reason::Hidden,
            Self::Option | Self::Invisible | Self::TrailingDotOrSpace | Self::Device => Reason::Path,
        }
    }

    fn of(name: &[u8]) -> Option<Self> {
        let Ok(text) = std::str::from_utf8(name) else { return Some(Self::Invisible) };
        // U+2024 looks like a dot.
        if text.starts_with(['.', '\u{2024}']) {
            return Some(Self::Hidden);
        }
        if text.starts_with('-') {
            return Some(Self::Option);
        }
        if text.chars().any(|c| c.is_control() || is_invisible(c)) {
            return Some(Self::Invisible);
        }
        if text.ends_with(['.', ' ']) {
            return Some(Self::TrailingDotOrSpace);
        }
        is_device(text).then_some(Self::Device)
    }
}

impl RelativePath {
    /// Returns the reason that unknown peers may not send this path, if there is one.
    #[must_use]
    pub fn odd_name(&self) -> Option<OddName> {
        self.names().find_map(OddName::of)
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

    fn of(path: &[u8]) -> Option<OddName> {
        RelativePath::parse(path).unwrap().odd_name()
    }

    #[test]
    fn confusing_names_are_odd_at_any_depth() {
        for (path, oddity) in [
            (b".ssh".as_slice(), OddName::Hidden),
            (b"a/.b/c", OddName::Hidden),
            ("\u{2024}ssh/x".as_bytes(), OddName::Hidden),
            (b"-rf", OddName::Option),
            (b"a/-rf/b", OddName::Option),
            ("photo\u{202e}gpj.exe".as_bytes(), OddName::Invisible),
            ("a\u{200b}b".as_bytes(), OddName::Invisible),
            ("\u{e0001}".as_bytes(), OddName::Invisible),
            (b"\xff\xfe", OddName::Invisible),
            (b"\xc2\x85", OddName::Invisible),
            (b"tail.", OddName::TrailingDotOrSpace),
            (b"tail /x", OddName::TrailingDotOrSpace),
            (b"...", OddName::Hidden),
            (b"CON", OddName::Device),
            (b"aux.txt", OddName::Device),
            (b"a/Com1.tar.gz", OddName::Device),
            ("lpt²".as_bytes(), OddName::Device),
            (b"nul .x", OddName::Device),
        ] {
            assert_eq!(of(path), Some(oddity), "{}", path.escape_ascii());
        }
    }

    #[test]
    fn other_names_are_accepted_from_unknown_peers() {
        for path in ["a", "a-b/c.d", "com", "com10", "console", "auxiliary.txt", " a", "naïve Ω 文 🙂", "a b"]
        {
            assert_eq!(of(path.as_bytes()), None, "{path}");
        }
    }
}
