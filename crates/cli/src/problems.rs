//! Errors for people: file, line, column, snippet, and what would be right.

use hopline_config::separated::byte_order_mark_len;
use hopline_config::source::Origin;
use hopline_lab::experiment::ExperimentError;
use hopline_lab::output::{OutputError, TracedError};
use hopline_lab::store::StoreError;
use hopline_lab::{Interrupted, Problem, Problems, RunError};
use miette::{Diagnostic, LabeledSpan, MietteHandlerOpts, NamedSource, ReportHandler, SourceCode};
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Failure of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input is wrong.
    Input(Problems),
    /// Results cannot be stored.
    Output(OutputError),
    /// Results of an experiment cannot be stored or read.
    Store(StoreError),
    /// Standard output cannot be written.
    Stdout(io::Error),
    /// Anything else.
    Other(String),
    /// Failures that have been printed: of outputs of an emulation.
    #[cfg(feature = "net")]
    Reported,
    /// Ctrl-C, with a message about the results so far.
    Interrupted(&'static str),
    /// Ctrl-C; finished runs are stored in this directory.
    Suspended(PathBuf),
}

impl Failure {
    /// Converts the error of an experiment with results in `directory`; empty: in memory.
    pub(crate) fn of_experiment(error: ExperimentError, directory: &Path) -> Self {
        match error {
            ExperimentError::Interrupted if directory.as_os_str().is_empty() => {
                Self::Interrupted(NOTHING_WRITTEN)
            }
            ExperimentError::Interrupted => Self::Suspended(directory.to_owned()),
            ExperimentError::Problems(problems) => Self::Input(problems),
            ExperimentError::Store(error) => Self::Store(error),
            ExperimentError::Failed(why) => Self::Other(why),
        }
    }
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        Self::of_experiment(error, Path::new(""))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::Input(problems)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Input(problem.into())
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}

impl From<TracedError> for Failure {
    fn from(error: TracedError) -> Self {
        match error {
            TracedError::Output(error) => Self::Output(error),
            TracedError::Run(error) => error.into(),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Interrupted => Self::Interrupted(NOTHING_WRITTEN),
            RunError::Failed(_) | RunError::Machine(_) | RunError::NotRepeatable { .. } => {
                Self::Other(error.to_string())
            }
        }
    }
}

impl From<Interrupted> for Failure {
    fn from(Interrupted: Interrupted) -> Self {
        Self::Interrupted(NOTHING_WRITTEN)
    }
}

const NOTHING_WRITTEN: &str = "interrupted; nothing was written";

const FAILED: u8 = 1;
const WRONG_INPUT: u8 = 2;
/// 128 + SIGINT, as shells report a command that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

impl Failure {
    /// Prints the failure on stderr, and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Input(Problems(problems)) => {
                for problem in problems {
                    print_error_line(&format!("{:?}", Rendered(problem)));
                }
                ExitCode::from(WRONG_INPUT)
            }
            Self::Output(error) => {
                print_error_line(&format!("{:?}", Rendered(&Problem::new(error.to_string()))));
                match error {
                    OutputError::Exists { .. }
                    | OutputError::InUse { .. }
                    | OutputError::Foreign { .. }
                    | OutputError::WrongKind { .. } => ExitCode::from(WRONG_INPUT),
                    OutputError::Appeared { .. } | OutputError::Io { .. } => ExitCode::from(FAILED),
                }
            }
            Self::Store(error) => {
                print_error_line(&format!("{:?}", Rendered(&Problem::new(error.to_string()))));
                match error {
                    StoreError::Io { .. } | StoreError::Busy { .. } => ExitCode::from(FAILED),
                    _ => ExitCode::from(WRONG_INPUT),
                }
            }
            // A reader that closes the pipe is satisfied: `hopline … | head` is no failure.
            Self::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Self::Stdout(error) => {
                print_error_line(&format!(
                    "{:?}",
                    Rendered(&Problem::new(format!("cannot write to stdout: {error}")))
                ));
                ExitCode::from(FAILED)
            }
            Self::Other(message) => {
                print_error_line(&format!("{:?}", Rendered(&Problem::new(message))));
                ExitCode::from(FAILED)
            }
            #[cfg(feature = "net")]
            Self::Reported => ExitCode::from(FAILED),
            Self::Interrupted(line) => {
                print_error_line(line);
                ExitCode::from(INTERRUPTED)
            }
            Self::Suspended(directory) => {
                let place = directory.display();
                print_error_line(&format!(
                    "interrupted; what was run is kept in {place}, and the same command goes on"
                ));
                ExitCode::from(INTERRUPTED)
            }
        }
    }
}

/// Prints a line on stderr. A failure is ignored, since it could not be reported.
pub(crate) fn print_error_line(line: &str) {
    let _ = writeln!(io::stderr(), "{}", line.trim_end());
}

/// Problem as miette renders it. Colours follow NO_COLOR and the terminal.
struct Rendered<'a>(&'a Problem);

impl fmt::Debug for Rendered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = ShownProblem { problem: self.0, place: self.0.at.as_ref().map(ShownSource::of) };
        MietteHandlerOpts::new().wrap_lines(false).build().debug(&shown, f)
    }
}

#[derive(Debug)]
struct ShownProblem<'a> {
    problem: &'a Problem,
    place: Option<ShownSource>,
}

#[derive(Debug)]
struct ShownSource {
    source: NamedSource<String>,
    span: Range<usize>,
}

impl ShownSource {
    /// The source without a byte order mark, which miette would count as a column.
    fn of(at: &Origin) -> Self {
        let mark = byte_order_mark_len(&at.source.text);
        let source = NamedSource::new(&at.source.name, at.source.text[mark..].to_owned());
        Self { source, span: at.span.start.saturating_sub(mark)..at.span.end.saturating_sub(mark) }
    }
}

impl fmt::Display for ShownProblem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for ShownProblem<'_> {}

impl Diagnostic for ShownProblem<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.place.as_ref().map(|place| &place.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.place.as_ref()?;
        let label = LabeledSpan::new_with_span(Some("here".into()), place.span.clone());
        Some(Box::new(std::iter::once(label)))
    }
}
