//! Origins of values, and errors in them: every problem names its file, line and column.

use super::separated::byte_order_mark_len;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A text that values were read from: a scenario, a movement or CSV file, or one setting of the command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Name of the source: the path as it was given, or `--set`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// Largest scenario, plan or CSV file: far more than people write, and little enough to be taken apart in memory.
pub const MAX_TEXT: u64 = 64 << 20;

impl Source {
    /// Reads a file of at most [`MAX_TEXT`] bytes.
    ///
    /// # Errors
    ///
    /// A [`Problem`] that names the file if it cannot be read, is not a regular file, is larger, or is not UTF-8.
    pub fn read(path: &Path) -> Result<Arc<Self>, Problem> {
        Self::read_up_to(path, MAX_TEXT)
    }

    /// Reads a file in the same way, with at most `most` bytes.
    pub fn read_up_to(path: &Path, most: u64) -> Result<Arc<Self>, Problem> {
        let name = path.display().to_string();
        let bytes = read_bounded(path, &name, most)?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Arc::new(Self { name, text })),
            Err(e) if e.as_bytes().starts_with(&[0x1f, 0x8b]) => {
                Err(Problem::new(format!("{name}: compressed by gzip")).help("unpack it with gunzip"))
            }
            Err(e) => {
                Err(Problem::new(format!("{name}: not UTF-8 text at byte {}", e.utf8_error().valid_up_to()))
                    .help("scenario, movement and CSV files are UTF-8 text"))
            }
        }
    }

    /// Returns the line and column of a byte offset, both from 1; the column counts characters.
    #[must_use]
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        line_column(&self.text, offset)
    }
}

/// Returns the line and column of a byte offset in `text`, both from 1; the column counts characters, and no byte
/// order mark.
/// Returns line and column, from 1, of a byte of a text.
pub fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let end = (0..=offset.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    let before = &text[..end];
    let line_start = before.rfind('\n').map_or_else(|| byte_order_mark_len(before), |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Reads the bytes of a file, without waiting for a file that never ends, such as /dev/zero or a pipe without
/// a writer.
fn read_bounded(path: &Path, name: &str, most: u64) -> Result<Vec<u8>, Problem> {
    let refused = |e: io::Error| unreadable(name, &e);
    let too_large = || {
        Problem::new(format!("{name}: larger than {} MiB", most >> 20))
            .help("files of this kind are read up to that size")
    };
    let found = fs::metadata(path).map_err(refused)?;
    if !found.is_file() {
        let kind = if found.is_dir() { "a directory" } else { "not a regular file" };
        return Err(Problem::new(format!("{name}: {kind}")).help("name a file of text"));
    }
    if found.len() > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // Files under /proc say they are empty, and any file may grow.
    File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)).map_err(refused)?;
    if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
}

fn unreadable(name: &str, error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::NotFound => Problem::new(format!("{name}: there is no such file"))
            .help("check the path; it is relative to where you are"),
        io::ErrorKind::PermissionDenied => Problem::new(format!("{name}: {error}"))
            .help("run this as a user that may read it, such as root (sudo); `namei -l FILE` shows the owner and permissions of the file and of each folder"),
        _ => Problem::new(format!("{name}: {error}")),
    }
}

/// The place of a value in its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The text.
    pub source: Arc<Source>,
    /// The bytes of the text that the value takes.
    pub span: Range<usize>,
}

impl Origin {
    /// Creates the whole value of an option of a command line.
    #[must_use]
    pub fn of_option(option: &str, text: &str) -> Self {
        let source = Arc::new(Source { name: option.to_owned(), text: text.to_owned() });
        Self { source, span: 0..text.len() }
    }

    /// Returns the line and column of the first character, both from 1.
    #[must_use]
    pub fn line_column(&self) -> (usize, usize) {
        self.source.line_column(self.span.start)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = &self.source;
        if source.name.starts_with("--") {
            return write!(f, "{} {}", source.name, source.text);
        }
        let (line, column) = self.line_column();
        write!(f, "{}:{line}:{column}", source.name)
    }
}

/// An error in an input: its place, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Description of the error.
    pub message: String,
    /// Place of the error, if it is in a text.
    pub at: Option<Origin>,
    /// Remedy.
    pub help: Option<String>,
}

impl Problem {
    /// Creates a problem without a place.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), at: None, help: None }
    }

    /// Returns the same problem, at `origin`.
    #[must_use]
    pub fn at(mut self, origin: &Origin) -> Self {
        self.at = Some(origin.clone());
        self
    }

    /// Returns the same problem, with a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = &self.at {
            write!(f, "{at}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(help) = &self.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}

/// Everything that is wrong with an input; at least one problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Longer words are near nothing: comparing two takes memory for the product of their lengths.
const MAX_COMPARED: usize = 200;

/// Returns ` — did you mean …?`, if one of the known words is near.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_COMPARED {
        return None;
    }
    let known = known.into_iter().filter(|name| name.len() <= MAX_COMPARED);
    let distance =
        |candidate: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase());
    let limit = 1 + word.chars().count() / 3;
    let (best, name) = known.map(|name| (distance(name), name)).min()?;
    let related = |name: &str| word.len() >= 3 && (name.starts_with(word) || word.starts_with(name));
    (best <= limit || related(name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let source = Source { name: "x".into(), text: "a\nβγ = 1\n".into() };
        assert_eq!(source.line_column(0), (1, 1));
        assert_eq!(source.line_column(2), (2, 1));
        assert_eq!(source.line_column("a\nβ".len()), (2, 2));
        assert_eq!(source.line_column(3), (2, 1), "the middle of a character belongs to it");
        assert_eq!(source.line_column(999), (3, 1));
    }

    #[test]
    fn a_byte_order_mark_is_no_column() {
        let source = Source { name: "x".into(), text: "\u{feff}ab\nc".into() };
        assert_eq!(source.line_column(0), (1, 1));
        assert_eq!(source.line_column(3), (1, 1));
        assert_eq!(source.line_column(4), (1, 2));
        assert_eq!(source.line_column(6), (2, 1));
    }

    #[test]
    fn the_nearest_word_is_suggested_only_if_near() {
        assert_eq!(nearest("widnow", ["window", "width_m"]), Some("window"));
        assert_eq!(nearest("durration", ["duration_s", "seed"]), Some("duration_s"));
        assert_eq!(nearest("zzzz", ["window", "preset"]), None);
        assert_eq!(nearest("x", []), None);
        assert_eq!(nearest("Z-44", ["H-4", "Z-4a"]), Some("Z-4a"), "capitals are not far from themselves");
    }

    #[test]
    fn overlong_words_are_not_compared() {
        let (long, other) = ("x".repeat(1_000_000), "y".repeat(1_000_000));
        assert_eq!(nearest(&long, [other.as_str(), "window"]), None);
        assert_eq!(nearest("widnow", [long.as_str(), "window"]), Some("window"));
    }

    #[test]
    fn a_file_is_read_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "abcd").unwrap();
        assert_eq!(Source::read_up_to(&path, 4).unwrap().text, "abcd");
        let problem = Source::read_up_to(&path, 3).unwrap_err();
        assert!(problem.message.ends_with("f: larger than 0 MiB"), "{problem}");
    }

    #[test]
    fn a_special_file_is_not_read() {
        assert_eq!(
            Source::read(Path::new("/dev/zero")).unwrap_err().message,
            "/dev/zero: not a regular file"
        );
        assert_eq!(Source::read(Path::new("/")).unwrap_err().message, "/: a directory");
    }

    #[test]
    fn a_compressed_file_is_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.gz");
        fs::write(&path, [0x1f, 0x8b, 8, 0, 0xff]).unwrap();
        let problem = Source::read(&path).unwrap_err();
        assert!(problem.message.ends_with("compressed by gzip"), "{problem}");
        assert_eq!(problem.help.as_deref(), Some("unpack it with gunzip"));
    }

    #[test]
    fn a_missing_file_is_named() {
        let problem = Source::read(Path::new("/no/such/file.toml")).unwrap_err();
        assert_eq!(problem.message, "/no/such/file.toml: there is no such file");
    }
}
