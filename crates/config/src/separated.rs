//! Lines of values with separators between them, as spreadsheets write them: with or without a byte order
//! mark, with commas or semicolons.

use core::ops::Range;

/// Byte order mark that some programs put before UTF-8; no part of the text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the number of bytes of `text` that are a byte order mark.
#[must_use]
pub fn byte_order_mark_len(text: &str) -> usize {
    if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 }
}

/// Returns the lines that are neither empty nor comments (`#`), without line ends and without the byte order
/// mark.
pub fn rows(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = byte_order_mark_len(text);
    let lines = text[start..].split_inclusive('\n').map(move |line| {
        let row = start..start + line.trim_end().len();
        start += line.len();
        row
    });
    lines.filter(|row| {
        let row = text[row.clone()].trim_start();
        !row.is_empty() && !row.starts_with('#')
    })
}

/// Separator between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// `,`
    Comma,
    /// `;`: of spreadsheets where the comma stands in numbers.
    Semicolon,
}

impl Separator {
    /// Returns the separator of a file with this header.
    #[must_use]
    pub fn of(header: &str) -> Self {
        if header.contains(';') { Self::Semicolon } else { Self::Comma }
    }

    const fn char(self) -> char {
        match self {
            Self::Comma => ',',
            Self::Semicolon => ';',
        }
    }

    /// Returns its name in the plural.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Comma => "commas",
            Self::Semicolon => "semicolons",
        }
    }

    /// Returns the cells of a row, without the blanks around them.
    pub fn cells(self, text: &str, row: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let mut start = row.start;
        text[row].split(self.char()).map(move |cell| {
            let begin = start + (cell.len() - cell.trim_start().len());
            start += cell.len() + 1;
            begin..begin + cell.trim().len()
        })
    }
}

/// Returns a remedy for `word`, if it is a number with a decimal comma.
pub fn decimal_comma(word: &str) -> Option<String> {
    let (whole, part) = word.split_once(',')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_number = digits(whole.trim_start_matches(['-', '+'])) && digits(part);
    is_number.then(|| format!("decimals stand behind a point: {whole}.{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_no_byte_order_mark_line_ends_or_comments() {
        let text = "\u{feff}# made by hand\r\n a,b \r\n\r\n1,2";
        let rows: Vec<&str> = rows(text).map(|row| &text[row]).collect();
        assert_eq!(rows, [" a,b", "1,2"]);
        assert_eq!(super::rows("\u{feff}").count(), 0);
        assert_eq!(super::rows("\u{feff}\n\u{feff}x").count(), 1, "a mark elsewhere is a character");
    }

    #[test]
    fn semicolons_separate_if_the_header_has_any() {
        let cells = |text: &str| {
            let cells = Separator::of(text).cells(text, 0..text.len());
            cells.map(|cell| text[cell].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(cells("a; b ;"), ["a", "b", ""]);
        assert_eq!(cells("a;b,c"), ["a", "b,c"]);
        assert_eq!(cells("a,b"), ["a", "b"]);
        assert_eq!(cells(""), [""]);
    }

    #[test]
    fn a_decimal_comma_is_distinguished_from_other_words() {
        assert_eq!(decimal_comma("-12,5").as_deref(), Some("decimals stand behind a point: -12.5"));
        for other in ["12.5", "a,b", ",5", "1,", "1,2,3", "", "1,-2"] {
            assert_eq!(decimal_comma(other), None, "{other}");
        }
    }
}
