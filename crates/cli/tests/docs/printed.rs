//! What a page says that is printed, against what is printed.

/// How `printed` differs from what is `shown`: the first line that should be there, and what stands in its place. CPU
/// times and the width of columns do not count, and `…` alone in a line stands for any lines.
///
/// # Errors
///
/// The difference.
pub(crate) fn compare(shown: &str, printed: &str) -> Result<(), String> {
    let (shown, printed) = (masked(shown), masked(printed));
    let mut matched = 0;
    if matches(&shown, &printed, &mut matched) {
        return Ok(());
    }
    let line = |lines: &[String]| lines.get(matched).cloned().unwrap_or_else(|| "nothing more".into());
    Err(format!("shown:   {}\nprinted: {}", line(&shown), line(&printed)))
}

/// Whether `shown` leaves lines out.
pub(crate) fn is_abridged(shown: &str) -> bool {
    shown.lines().any(|line| line.trim() == "…")
}

/// `matched`: how many lines agree from the start.
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

/// The lines without what differs from machine to machine.
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

/// `line` without the number that ends in this column.
fn mask(line: &str, column: usize) -> String {
    let before: String = line.chars().take(column).collect();
    let after: String = line.chars().skip(column).collect();
    let kept = before.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if kept.len() == before.len() { line.to_owned() } else { format!("{kept}…{after}") }
}
