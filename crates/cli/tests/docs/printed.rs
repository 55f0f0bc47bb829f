//! Comparison of the output on a page with the output of its command.

/// Compares `printed` with `shown`. CPU times and the width of columns are ignored, and a line of only `…` stands for any
/// lines.
///
/// # Errors
///
/// The first missing line, and the line in its place.
pub(crate) fn compare(shown: &str, printed: &str) -> Result<(), String> {
    let (shown, printed) = (masked(shown), masked(printed));
    let mut matched = 0;
    if matches(&shown, &printed, &mut matched) {
        return Ok(());
    }
    let line = |lines: &[String]| lines.get(matched).cloned().unwrap_or_else(|| "nothing more".into());
    Err(format!("shown:   {}\nprinted: {}", line(&shown), line(&printed)))
}

/// Returns whether `shown` omits lines.
pub(crate) fn is_abridged(shown: &str) -> bool {
    shown.lines().any(|line| line.trim() == "…")
}

/// Returns whether the lines match. `matched`: number of lines that agree from the start.
fn matches(shown: &[String], printed: &[String], matched: &mut usize) -> bool {
    match (shown, printed) {
        ([], []) => true,
        ([left_out, rest @ ..], _) if left_out == "…" => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..], &mut 0))
        }
        ([expected, shown @ ..], [is, printed @ ..]) if expected == is => {
            *matched += 1;
            matches(shown, printed, matched)
        }
        _ => false,
    }
}

const UNIT: &str = "CPU s";

/// Returns the lines without the parts that differ between machines.
fn masked(text: &str) -> Vec<String> {
    let mut column = None;
    let lines = text.trim_matches('\n').lines().map(|line| {
        let line = match line.find(UNIT) {
            _ if line.trim().is_empty() => {
                column = None;
                line.to_owned()
            }
            Some(at) if ends_in_number(&line[..at]) => mask(line, line[..at].trim_end().chars().count()),
            Some(at) => {
                column = Some(line[..at + UNIT.len()].chars().count());
                line.to_owned()
            }
            None => column.map_or_else(|| line.to_owned(), |column| mask(line, column)),
        };
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    lines.collect()
}

fn ends_in_number(text: &str) -> bool {
    text.trim_end().ends_with(|c: char| c.is_ascii_digit())
}

/// Returns `line` without the number that ends in this column.
fn mask(line: &str, column: usize) -> String {
    let before: String = line.chars().take(column).collect();
    let after: String = line.chars().skip(column).collect();
    let kept = before.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if kept.len() == before.len() { line.to_owned() } else { format!("{kept}…{after}") }
}
