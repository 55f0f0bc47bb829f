//! Numbers with and without a unit.

use hopline_config::unit;

/// Units that pages use, each with the quantity that it measures and its size.
const UNITS: [(&str, char, f64); 14] = [
    ("ns", 't', 1e-9),
    ("µs", 't', 1e-6),
    ("ms", 't', 1e-3),
    ("s", 't', 1.0),
    ("min", 't', 60.0),
    ("h", 't', 3600.0),
    ("byte", 'b', 1.0),
    ("bytes", 'b', 1.0),
    ("KiB", 'b', 1024.0),
    ("MiB", 'b', 1_048_576.0),
    ("GiB", 'b', 1_073_741_824.0),
    ("b/s", 'r', 1e-6),
    ("kb/s", 'r', 1e-3),
    ("Mb/s", 'r', 1.0),
];

/// Returns the number that `text` states of the key called `name`, in the unit of the key.
pub(super) fn read(text: &str, name: &str) -> Option<f64> {
    let end = text.char_indices().rfind(|(_, c)| c.is_ascii_digit()).map(|(at, _)| at + 1)?;
    let number = number(&text[..end])?;
    let of_text = text[end..].trim();
    if of_text.is_empty() {
        return Some(number);
    }
    let of_key = unit::of(name)?;
    if of_text == of_key {
        return Some(number);
    }
    let find = |unit| UNITS.iter().find(|(of_unit, ..)| *of_unit == unit);
    let ((_, measured, size), (_, of_quantity, of_one)) = (find(of_text)?, find(of_key)?);
    (measured == of_quantity).then(|| number * size / of_one)
}

/// Returns the ends of the range that `text` states: "1 to 7", "1–7", "100 ms–1 h".
pub(super) fn range(text: &str, name: &str) -> Option<(f64, f64)> {
    let text = text.strip_prefix("whole, ").unwrap_or(text);
    let (least, greatest) = text.split_once(" to ").or_else(|| text.split_once('–'))?;
    Some((read(least.trim(), name)?, read(greatest.trim(), name)?))
}

/// Returns whether two numbers are the same but for rounding.
pub(super) fn are_equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// Returns a number such as `65 535`, `0.2` or `1/8`.
fn number(text: &str) -> Option<f64> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace() && *c != ',').collect();
    match digits.split_once('/') {
        Some((over, under)) => Some(over.parse::<f64>().ok()? / under.parse::<f64>().ok()?),
        None => digits.replace('−', "-").parse().ok(),
    }
}
