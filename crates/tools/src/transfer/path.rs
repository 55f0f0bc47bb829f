//! Relative paths of received files, which never leave the receiver's directory.

use crate::printable::{printable, printable_brief};
use std::fmt;

/// Maximum bytes of a path on the wire: Linux's PATH_MAX less the NUL.
pub const MAX_PATH: usize = 4095;
/// Maximum bytes of a name in a path: Linux's NAME_MAX.
pub const MAX_NAME: usize = 255;
/// Maximum number of names in a path.
pub const MAX_DEPTH: usize = 64;
/// Prefix of the names of partial files. Other files with this prefix are rejected.
pub(super) const PART_PREFIX: &str = ".hopline-part-";

/// Relative path below the receiver's directory: names separated by `/`. It never leads outside.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelativePath(Vec<u8>);

/// Reason that a path is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    /// The path or one of its names is empty.
    #[error("it has an empty name")]
    Empty,
    /// It begins with `/`.
    #[error("it is absolute")]
    Absolute,
    /// One of its names is `.` or `..`.
    #[error("it has `.` or `..` in it")]
    Dots,
    /// It contains a backslash, which separates names on other systems.
    #[error("it has a backslash in it")]
    Backslash,
    /// It contains NUL or another ASCII control character.
    #[error("it has a control character in it")]
    Control,
    /// A name is longer than [`MAX_NAME`], or the path longer than [`MAX_PATH`].
    #[error("it is too long: a name has at most 255 bytes, a path 4095")]
    TooLong,
    /// It has more than [`MAX_DEPTH`] names.
    #[error("it is too deep: at most 64 names")]
    TooDeep,
    /// A name has the prefix of partial files.
    #[error("names that begin with `.hopline-part-` are for partial files")]
    Reserved,
}

impl RelativePath {
    /// Validates a path from a peer or a file system.
    ///
    /// # Errors
    ///
    /// A path that could lead outside the directory, or mislead a user that reads it.
    pub fn parse(bytes: &[u8]) -> Result<Self, PathProblem> {
        if bytes.len() > MAX_PATH {
            return Err(PathProblem::TooLong);
        }
        if bytes.first() == Some(&b'/') {
            return Err(PathProblem::Absolute);
        }
        if bytes.iter().any(u8::is_ascii_control) {
            return Err(PathProblem::Control);
        }
        if bytes.contains(&b'\\') {
            return Err(PathProblem::Backslash);
        }
        for (depth, name) in bytes.split(|byte| *byte == b'/').enumerate() {
            match name {
                _ if depth >= MAX_DEPTH => return Err(PathProblem::TooDeep),
                b"" => return Err(PathProblem::Empty),
                b"." | b".." => return Err(PathProblem::Dots),
                _ if name.len() > MAX_NAME => return Err(PathProblem::TooLong),
                _ if name.starts_with(PART_PREFIX.as_bytes()) => return Err(PathProblem::Reserved),
                _ => {}
            }
        }
        Ok(Self(bytes.to_vec()))
    }

    /// Returns the path in the form of the wire.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the names of the path, outermost first; at least one.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    /// Returns the whole path in printable form. [`Display`](fmt::Display) cuts long ones.
    #[must_use]
    pub fn whole(&self) -> String {
        printable(&self.0)
    }

    /// Returns `self/name`.
    ///
    /// # Errors
    ///
    /// As for [`RelativePath::parse`].
    pub fn join(&self, name: &[u8]) -> Result<Self, PathProblem> {
        Self::parse(&[&self.0, b"/".as_slice(), name].concat())
    }
}

/// Prints its first 255 characters.
impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable_brief(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_directory_are_accepted() {
        for path in ["a", "a/b/c.txt", "..a", "a..", "...", "C:", " ", "ünïcödé", "a b/-rf"] {
            assert_eq!(RelativePath::parse(path.as_bytes()).unwrap().to_string(), path);
        }
        let longest = vec![b'x'; MAX_NAME];
        assert_eq!(RelativePath::parse(&longest).unwrap().as_bytes(), longest);
        let deepest = vec!["d"; MAX_DEPTH].join("/");
        assert_eq!(RelativePath::parse(deepest.as_bytes()).unwrap().names().count(), MAX_DEPTH);
    }

    #[test]
    fn paths_that_lead_elsewhere_are_rejected() {
        use PathProblem::{Absolute, Backslash, Control, Dots, Empty, Reserved, TooDeep, TooLong};
        for (path, problem) in [
            ("", Empty),
            ("a//b", Empty),
            ("a/", Empty),
            ("/etc/passwd", Absolute),
            ("/", Absolute),
            ("..", Dots),
            ("../a", Dots),
            ("a/../../b", Dots),
            ("a/.", Dots),
            ("..\\a", Backslash),
            ("C:\\a", Backslash),
            ("a\0b", Control),
            ("a\nb", Control),
            ("\x1b[2J", Control),
            (".hopline-part-0", Reserved),
            ("a/.hopline-part-0/b", Reserved),
        ] {
            assert_eq!(RelativePath::parse(path.as_bytes()), Err(problem), "{path:?}");
        }
        assert_eq!(RelativePath::parse(&[b'x'; MAX_NAME + 1]), Err(TooLong));
        assert_eq!(RelativePath::parse("ab/".repeat(2000).as_bytes()), Err(TooLong));
        assert_eq!(RelativePath::parse(vec!["d"; MAX_DEPTH + 1].join("/").as_bytes()), Err(TooDeep));
    }
}
