//! Key files, with errors for people.

use crate::problems::Failure;
use hopline_config::source::{Origin, Problems, Source};
use hopline_lab::Problem;
use hopline_secure::keys::{KeyFileError, KnownPeers, Name};
use hopline_secure::{PrivateKey, PublicKey};
use hopline_streams::key_files::{self, Error, KeyInFile, Problem as FileProblem};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns the default path of the file called `name`.
pub(crate) fn default_path(name: &str) -> Result<PathBuf, Failure> {
    key_files::of_user(name).ok_or_else(|| {
        let help = match name {
            "key" => "set HOME, or name the file: `hopline key new FILE` makes it, `--key FILE` takes it",
            _ => "set HOME, or name the file: `--known-peers FILE`",
        };
        let what = format!("neither HOME nor XDG_CONFIG_HOME says where the file `{name}` is");
        Problem::new(what).help(help).into()
    })
}

/// Reads a file of a private or of a shared key.
pub(crate) fn load_key(path: &Path) -> Result<KeyInFile, Failure> {
    key_files::load_key(path).map_err(failure)
}

/// Reads a file of known peers.
pub(crate) fn load_peers(path: &Path) -> Result<KnownPeers, Failure> {
    key_files::load_peers(path).map_err(failure)
}

/// Writes a new private key. An existing file is not changed.
pub(crate) fn store_key(path: &Path, key: &PrivateKey) -> Result<(), Failure> {
    key_files::store_key(path, key).map_err(failure)
}

/// Adds a line to a file of known peers, which is created if it does not exist.
pub(crate) fn add_peer(path: &Path, name: &Name, key: &PublicKey) -> Result<(), Failure> {
    key_files::add_peer(path, name, key).map_err(failure)
}

fn failure(error: Error) -> Failure {
    let name = error.path.display().to_string();
    let shown = error.problem.shown().map(str::to_owned);
    match error.problem {
        FileProblem::Unsuitable { what, help, .. } => {
            Problem::new(format!("{name}: {what}")).help(help).into()
        }
        FileProblem::Reading(error) => Problem::new(format!("{name}: {error}")).into(),
        FileProblem::Writing(error) => Failure::Other(format!("cannot write {name}: {error}")),
        FileProblem::Mistakes { mistakes, text } => {
            let source = shown.map(|text| Arc::new(Source { name: name.clone(), text }));
            let problem = |mistake| problem(&name, &text, source.as_ref(), mistake);
            Failure::Input(Problems(mistakes.into_iter().map(problem).collect()))
        }
    }
}

/// Returns a problem of a file: with its `source` shown, or only its position.
fn problem(name: &str, text: &str, source: Option<&Arc<Source>>, mistake: KeyFileError) -> Problem {
    match source {
        Some(source) => {
            let at = Origin { source: source.clone(), span: mistake.span };
            Problem::new(mistake.message).at(&at).help(mistake.help)
        }
        None => {
            let (line, column) = mistake.line_column(text);
            Problem::new(format!("{name}:{line}:{column}: {}", mistake.message)).help(mistake.help)
        }
    }
}
