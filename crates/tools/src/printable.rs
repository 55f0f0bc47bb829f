//! Text of a peer, made safe for display.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns text of a peer without control sequences and without invisible characters.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for c in String::from_utf8_lossy(bytes).chars() {
        let written = if c.is_control() || is_invisible(c) {
            write!(text, "{}", c.escape_unicode())
        } else {
            text.write_char(c)
        };
        written.expect("strings take everything");
    }
    text
}

/// Maximum characters displayed of a peer's path.
const BRIEF: usize = 255;

/// Returns text of a peer in printable form, shortened if it is long.
pub(crate) fn printable_brief(bytes: &[u8]) -> String {
    let mut text = printable(bytes);
    if let Some((end, _)) = text.char_indices().nth(BRIEF) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Returns a local path in printable form, since its names may also come from peers.
pub(crate) fn printable_path(place: &Path) -> String {
    printable(place.as_os_str().as_bytes())
}

/// Returns whether a character is invisible: characters of Unicode's class Cf that reverse, join or hide text and have no
/// legitimate use in names (UTR 36 §3), and Unicode's line ends.
pub(crate) const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::{printable, printable_brief};

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\u{1b}[2J\u{9b}b".as_bytes()), "a\\u{1b}[2J\\u{9b}b");
        assert_eq!(printable(b"\xff"), "\u{fffd}");
    }

    #[test]
    fn long_paths_are_cut_after_escaping() {
        assert_eq!(printable_brief("ü".repeat(255).as_bytes()), "ü".repeat(255));
        let cut = printable_brief("\u{e0001}".repeat(1000).as_bytes());
        assert_eq!(cut.chars().count(), 256);
        assert!(cut.starts_with("\\u{e0001}") && cut.ends_with('…'), "{cut}");
    }

    #[test]
    fn deceptive_characters_are_escaped() {
        assert_eq!(printable("photo\u{202e}gpj.exe".as_bytes()), "photo\\u{202e}gpj.exe");
        assert_eq!(printable("a\u{200b}b\u{2066}c\u{feff}".as_bytes()), "a\\u{200b}b\\u{2066}c\\u{feff}");
        assert_eq!(printable("naïve Ω 文 🙂".as_bytes()), "naïve Ω 文 🙂");
    }
}
