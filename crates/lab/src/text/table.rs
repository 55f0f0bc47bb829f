//! Plain text tables.

use crate::metrics::Level;
use crate::record::ByKey;

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Left.
    Left,
    /// Right.
    Right,
}

/// Formats rows under a header; columns are two spaces apart.
#[must_use]
pub fn render(header: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(header[column].0.chars().count())
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(header).zip(&widths).map(|((cell, (_, align)), &width)| match align {
            Align::Left => format!("{cell:<width$}"),
            Align::Right => format!("{cell:>width$}"),
        });
        let line = padded.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    let mut text = line(&mut header.iter().map(|(name, _)| *name));
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

/// Formats bit/s as kb/s.
#[must_use]
pub fn kbps(bps: f64) -> String {
    format!("{:.1}", bps / 1e3)
}

/// Returns a metric times `factor`, or a dash if it does not exist.
pub(super) fn cell(
    values: &ByKey<'_>,
    key: (Level, &str, &'static str),
    factor: f64,
    digits: usize,
) -> String {
    values.get(&key).map_or_else(|| "-".to_owned(), |value| format!("{:.digits$}", value * factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_their_widest_cell() {
        let header = [("flow", Align::Left), ("kb/s", Align::Right)];
        let rows = vec![vec!["a".into(), "1234.5".into()], vec!["länger".into(), "7".into()]];
        assert_eq!(render(&header, &rows), "flow      kb/s\na       1234.5\nlänger       7\n");
    }

    #[test]
    fn a_table_without_rows_has_only_its_header() {
        assert_eq!(render(&[("a", Align::Left), ("b", Align::Left)], &[]), "a  b\n");
    }
}
