//! Tables of a page, by line.

/// A table.
pub(super) struct Table {
    /// Line of its header.
    pub(super) line: usize,
    /// Content of the HTML comment right before it.
    pub(super) mark: Option<String>,
    /// Cells of the header.
    pub(super) header: Vec<String>,
    /// Rows, each with its line.
    pub(super) rows: Vec<(usize, Vec<String>)>,
}

impl Table {
    /// Returns the tables of a page, in order. Code blocks have none.
    pub(super) fn all(text: &str) -> Vec<Self> {
        let (mut tables, mut mark, mut is_code): (Vec<Self>, Option<String>, bool) =
            (Vec::new(), None, false);
        let mut is_open = false;
        for (number, line) in (1..).zip(text.lines()) {
            is_code ^= line.trim_start().starts_with("```");
            let is_row = !is_code && line.starts_with('|');
            match tables.last_mut().filter(|_| is_open) {
                Some(table) if is_row && !is_delimiter(line) => table.rows.push((number, cells(line))),
                None if is_row => {
                    tables.push(Self {
                        line: number,
                        mark: mark.take(),
                        header: cells(line),
                        rows: Vec::new(),
                    });
                }
                _ => {}
            }
            is_open = is_row;
            let comment = line.trim().strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->"));
            match comment {
                Some(comment) => mark = Some(comment.trim().to_owned()),
                None if !line.trim().is_empty() => mark = None,
                None => {}
            }
        }
        tables
    }
}

/// Returns whether `line` separates the header from the rows.
fn is_delimiter(line: &str) -> bool {
    line.chars().all(|c| "|-: ".contains(c))
}

/// Returns the cells of a row. A `|` in a cell is written `\|`.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|');
    let inner = inner.strip_suffix('|').unwrap_or(inner).replace("\\|", "\u{0}");
    inner.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect()
}
