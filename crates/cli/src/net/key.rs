//! `hopline key`.

use crate::console;
use crate::net::args::{Key as Args, KeyCommand};
use crate::net::identity;
use crate::net::keys::{default_path, load_key, load_peers};
use crate::problems::{Failure, print_error_line};
use hopline_secure::{Fingerprint, PublicKey};
use hopline_streams::key_files::KeyInFile;
use std::path::{Path, PathBuf};

/// Creates keys, and prints their public parts.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    match &args.command {
        KeyCommand::New(given) => make(&path_of(given.file.as_deref(), "key")?),
        KeyCommand::Show(given) => show(&path_of(given.file.as_deref(), "key")?),
        KeyCommand::Peers(given) => peers(&path_of(given.file.as_deref(), "known_peers")?),
    }
}

fn path_of(given: Option<&Path>, name: &str) -> Result<PathBuf, Failure> {
    given.map_or_else(|| default_path(name), |path| Ok(path.to_owned()))
}

fn make(path: &Path) -> Result<(), Failure> {
    identity::create(path)?;
    show(path)
}

fn show(path: &Path) -> Result<(), Failure> {
    console::print(&match load_key(path)? {
        KeyInFile::Private(key) => public(&key.public()),
        KeyInFile::Shared(key) => format!("a shared key\n{}", line(key.fingerprint())),
    })
}

fn peers(path: &Path) -> Result<(), Failure> {
    let known = load_peers(path)?;
    if known.peers().is_empty() {
        print_error_line(&format!("{}: nobody is known", path.display()));
    }
    let width = known.peers().iter().map(|peer| peer.name.as_str().len()).max().unwrap_or(0);
    let lines = known.peers().iter().map(|peer| {
        let name = peer.name.as_str();
        format!("{name:width$}  {}\n", peer.key.fingerprint())
    });
    console::print(&lines.collect::<String>())
}

fn public(key: &PublicKey) -> String {
    format!("{key}\n{}", line(key.fingerprint()))
}

fn line(fingerprint: Fingerprint) -> String {
    format!("fingerprint {fingerprint}\n")
}
