//! Files of keys: where they are, who may read and write them, and what is wrong with them.

mod guard;

use self::guard::{Kept, read};
use crate::problems::Failure;
use hopline_lab::Problem;
use hopline_scenario::source::{Origin, Problems, Source};
use hopline_secure::keys::{
    FileKind, KnownPeers, Mistake, Name, PRIVATE, Quote, private_key, private_key_file, shared_key,
};
use hopline_secure::{PreSharedKey, PrivateKey, PublicKey};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of one key.
pub(crate) enum KeyInFile {
    /// A private key.
    Private(PrivateKey),
    /// A secret that both ends have.
    Shared(PreSharedKey),
}

/// Where the file called `name` is if nobody says otherwise.
pub(crate) fn default_place(name: &str) -> Result<PathBuf, Failure> {
    let folder =
        |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let settings = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
    let settings = settings.ok_or_else(|| {
        Problem::new("neither XDG_CONFIG_HOME nor HOME says where settings are").help("name a file")
    })?;
    Ok(settings.join("hopline").join(name))
}

/// Reads a file of a private or of a shared key.
pub(crate) fn load_key(path: &Path) -> Result<KeyInFile, Failure> {
    let text = read(path, Kept::Secret)?;
    let key = match FileKind::of(&text) {
        FileKind::Private => private_key(&text).map(KeyInFile::Private),
        FileKind::Shared => shared_key(&text).map(KeyInFile::Shared),
    };
    key.map_err(|mistake| problem(path, &text, None, mistake).into())
}

/// Reads a file of known peers.
pub(crate) fn load_peers(path: &Path) -> Result<KnownPeers, Failure> {
    let text = read(path, Kept::Unchanged)?;
    KnownPeers::parse(&text).map_err(|mistakes| {
        // A line is shown with those around it: where one may hold a secret, none is.
        let shown = !text.contains(PRIVATE) && mistakes.iter().all(|mistake| mistake.quote == Quote::Shown);
        let source = || Arc::new(Source { name: path.display().to_string(), text: text.to_string() });
        let source = shown.then(source);
        let problems = mistakes.into_iter().map(|mistake| problem(path, &text, source.as_ref(), mistake));
        Failure::Input(Problems(problems.collect()))
    })
}

/// Writes a new private key. A file that is there is left as it is.
pub(crate) fn store_key(path: &Path, key: &PrivateKey) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Other(format!("cannot write {}: {error}", path.display()));
    let folder = guard::folder(path);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    guard::check_folder(folder)?;
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let what = format!("{}: there is a file already", path.display());
            let help = "name another one, or move it away; who knows its public key would not know a new one";
            return Err(Problem::new(what).help(help).into());
        }
        Err(error) => return Err(failed(error)),
    };
    let written = file.write_all(private_key_file(key).as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|error| {
        // Half a key is none, and the next try must not find it there.
        let _ = fs::remove_file(path);
        failed(error)
    })
}

/// Adds a line to a file of known peers, which is made if it is not there.
pub(crate) fn add_peer(path: &Path, name: &Name, key: &PublicKey) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Other(format!("cannot write {}: {error}", path.display()));
    let folder = guard::folder(path);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    guard::check_folder(folder)?;
    let before = if path.exists() { read(path, Kept::Unchanged)?.to_string() } else { String::new() };
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path).map_err(failed)?;
    let line = format!("{gap}{}", KnownPeers::line(name, key));
    file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
}

/// A mistake in a file: shown in its `source`, or else only its place.
fn problem(path: &Path, text: &str, source: Option<&Arc<Source>>, mistake: Mistake) -> Problem {
    match source {
        Some(source) => {
            let at = Origin { source: source.clone(), span: mistake.span };
            Problem::new(mistake.message).at(&at).help(mistake.help)
        }
        None => {
            let (line, column) = mistake.line_column(text);
            let place = format!("{}:{line}:{column}", path.display());
            Problem::new(format!("{place}: {}", mistake.message)).help(mistake.help)
        }
    }
}
