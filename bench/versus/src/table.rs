//! Tables of medians in Markdown, also legible in a terminal.

use std::fmt::Write;

/// Spread, as a share of the median, from which on it is shown.
const SHOWN: f64 = 0.1;

/// Returns the median, with lowest and highest value if they differ.
#[must_use]
pub fn cell(mut values: Vec<f64>, digits: usize) -> String {
    values.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (values.first().copied(), values.last().copied()) else {
        return "–".into();
    };
    let middle = median(values);
    if high - low > SHOWN * middle.abs() && format!("{low:.digits$}") != format!("{high:.digits$}") {
        format!("{middle:.digits$} ({low:.digits$}–{high:.digits$})")
    } else {
        format!("{middle:.digits$}")
    }
}

/// Returns the median; NaN without values.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    if n == 0 { f64::NAN } else { (values[(n - 1) / 2] + values[n / 2]) / 2.0 }
}

/// Returns rows as a table in Markdown; the first is the heading.
#[must_use]
pub fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |c: usize| rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (c, (value, width)) in row.iter().zip(&widths).enumerate() {
            let _ =
                if c == 0 { write!(text, "| {value:<width$} ") } else { write!(text, "| {value:>width$} ") };
        }
        text.push_str("|\n");
        if index == 0 {
            for (c, width) in widths.iter().enumerate() {
                let dashes = "-".repeat(*width);
                let _ = if c == 0 { write!(text, "| {dashes} ") } else { write!(text, "| {dashes}:") };
            }
            text.push_str("|\n");
        }
    }
    text
}

/// Returns the distinct values, in the order of first appearance.
#[must_use]
pub fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.fold(Vec::new(), |mut seen, value| {
        if !seen.contains(&value) {
            seen.push(value);
        }
        seen
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_the_median_and_the_range_where_it_matters() {
        assert_eq!(cell(vec![1.0, 1.02], 2), "1.01");
        assert_eq!(cell(vec![3.0, 1.0, 2.0], 1), "2.0 (1.0–3.0)");
        assert_eq!(cell(vec![0.001, 0.002], 2), "0.00");
        assert_eq!(cell(Vec::new(), 2), "–");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest() {
        let rows = [vec![String::new(), "a".into()], vec!["peer".into(), "10.5".into()]];
        assert_eq!(aligned(&rows), "|      |    a |\n| ---- | ----:|\n| peer | 10.5 |\n");
    }
}
