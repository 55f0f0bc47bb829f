//! Helpers that the tests of movement files share.

use super::{MovementFormat, Recording};

/// Checks that `text` is refused at this line and column, in these words. Returns the help.
#[track_caller]
pub(super) fn assert_rejected(
    format: MovementFormat,
    text: &str,
    (line, column): (usize, usize),
    message: &str,
) -> String {
    let error = Recording::parse(format, text).unwrap_err();
    assert_eq!((error.line, error.column, error.message.as_str()), (line, column, message), "{text:?}");
    assert!(text.get(error.span).is_some());
    error.help
}
