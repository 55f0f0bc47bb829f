//! Words of a peer, for people.

use std::fmt::Write;

/// What a peer wrote, without anything a terminal would obey.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for c in String::from_utf8_lossy(bytes).chars() {
        let written =
            if c.is_control() { write!(text, "{}", c.escape_default()) } else { text.write_char(c) };
        written.expect("strings take everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\u{1b}[2J\u{9b}b".as_bytes()), "a\\u{1b}[2J\\u{9b}b");
        assert_eq!(printable(b"\xff"), "\u{fffd}");
    }
}
