//! Numbers of things in words.

use std::fmt::Display;

/// Returns a number of things: "1 run", "2 runs".
#[must_use]
pub fn count_text(n: usize, what: &str) -> String {
    count_text_as(n, n, what)
}

/// Returns a number of things, where the number is written as `text`: "1,200 runs".
#[must_use]
pub fn count_text_as(n: usize, text: impl Display, what: &str) -> String {
    format!("{text} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_singular() {
        assert_eq!([0, 1, 2].map(|n| count_text(n, "run")), ["0 runs", "1 run", "2 runs"]);
        assert_eq!(count_text_as(1200, "1,200", "run"), "1,200 runs");
    }
}
