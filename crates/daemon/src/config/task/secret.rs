//! Secrets, each in a file of its own. `hopline_streams::key_files` reads them and checks the permissions of the files.

use super::super::keys::{KindKey, proxy};
use super::super::values;
use hopline_config::schema::Section;
use hopline_config::source::{Origin, Problem};
use hopline_middlebox::gateway::socks::Login;
use hopline_streams::key_files::{self, Error};
use std::path::Path;

/// Returns the `N` bytes in the file that `key_file` names.
pub(super) fn key<const N: usize>(kind: KindKey, section: &Section<'_>) -> Result<[u8; N], Problem> {
    let (path, origin) = key_file_path(kind, section)?;
    read_secret(path, origin)
}

/// Returns the `N` bytes in the file that `key_file` names. `command`: the command that prints such a key, for messages.
pub(super) fn key_by<const N: usize>(
    kind: KindKey,
    section: &Section<'_>,
    command: &str,
) -> Result<[u8; N], Problem> {
    let (path, origin) = key_file_path(kind, section)?;
    load(path, origin, &key_files::into_secret(command, Path::new(path)))
}

/// Returns the `N` bytes that a file contains as hexadecimal digits.
pub(super) fn read_secret<const N: usize>(path: &str, origin: &Origin) -> Result<[u8; N], Problem> {
    load(path, origin, &key_files::new_secret(Path::new(path), N))
}

/// Returns the login, USER:PASSWORD, in the first line of a file.
pub(super) fn login(path: &str, origin: &Origin) -> Result<Login, Problem> {
    const RIGHT: &str = "the first line of a file of a login is USER:PASSWORD";
    let text = key_files::load_text(Path::new(path), RIGHT).map_err(|error| problem(&error, origin))?;
    let line = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default().trim();
    line.split_once(':')
        .and_then(|(user, password)| Login::new(user, password))
        .ok_or_else(|| Problem::new(format!("{path}: no login")).at(origin).help(RIGHT))
}

fn key_file_path<'a>(kind: KindKey, section: &Section<'a>) -> Result<(&'a str, &'a Origin), Problem> {
    let name = proxy::KEY_FILE.name;
    let path = section
        .word(name)
        .ok_or_else(|| values::missing(section, name, kind.word(), "\"/etc/hopline/link.key\""))?;
    Ok((path, section.origin_of(name)))
}

fn load<const N: usize>(path: &str, origin: &Origin, made: &str) -> Result<[u8; N], Problem> {
    if path.len() >= 32 && path.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        // The message does not quote the line, because the line contains the key.
        return Err(Problem::new(format!("{origin}: this is a key, but the name of a key file is expected"))
            .help("a proxy file is not secret: put the key into a file that only its owner may read, and create a new key if other users could read this one"));
    }
    key_files::load_secret::<N>(Path::new(path), made)
        .map(|bytes| *bytes)
        .map_err(|error| problem(&error, origin))
}

fn problem(error: &Error, origin: &Origin) -> Problem {
    let (what, help) = error.parts();
    let problem = Problem::new(what).at(origin);
    match help {
        Some(help) => problem.help(help),
        None => problem,
    }
}
