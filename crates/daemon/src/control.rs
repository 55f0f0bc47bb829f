//! Socket at which a daemon reports its status. It writes to each client that connects, and reads nothing: no client can
//! change anything, so every user may query it, or the members of one group.

use crate::RunError;
use crate::config::StatusGroup;
use crate::folder::Folder;
use crate::server::{self, RequestKind};
use crate::state;
use crate::status::Status;
use hopline_linux::accounts;
use rustix::process::{Gid, getegid, geteuid, getgroups};
use rustix::thread::set_thread_groups;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest answer that is read, bytes: far more than the status of the most proxies.
const MAX_ANSWER: u64 = 16 << 20;

/// Joins the group that may query. The owner of a file may give it to an own group without further privilege.
pub(crate) fn join(group: &StatusGroup) -> Result<(), RunError> {
    let gid = Gid::from_raw(group.id);
    let of_ours = getgroups().unwrap_or_default();
    if getegid() == gid || of_ours.contains(&gid) {
        return Ok(());
    }
    let all: Vec<Gid> = of_ours.into_iter().chain([gid]).collect();
    set_thread_groups(&all)
        .map_err(|error| RunError::Group(geteuid().as_raw(), group.name.clone(), error.into()))
}

/// Listens for the members of a group or for all users, with any umask. The socket of a killed daemon is removed first: the
/// caller holds the lock.
pub(crate) fn listen(folder: &Folder, name: &str, group: Option<&StatusGroup>) -> io::Result<UnixListener> {
    // Connecting requires write permission (unix(7)).
    let mode = if group.is_some() { 0o660 } else { 0o666 };
    folder.listen(&state::socket_name(name), mode, group.map(|group| group.id))
}

/// Answers each client that connects.
pub(crate) fn serve(listener: &UnixListener, status: impl Fn() -> Status) -> io::Result<()> {
    let answer = |_: &[u8]| serde_json::to_string(&status()).expect("words and numbers").into_bytes();
    server::serve(listener, RequestKind::Nothing, answer)
}

/// Error of a status query.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// There is no daemon of this name.
    #[error("no daemon called \"{name}\" answers in {}: {error}{}", folder.display(), available_names(names))]
    Absent {
        /// Name in the query.
        name: String,
        /// Folder of the socket.
        folder: PathBuf,
        /// Daemons with a socket there.
        names: Vec<String>,
        /// Error of the system.
        error: io::Error,
    },
    /// This user may not query the daemon.
    #[error("user {user} may not ask the daemon \"{name}\": {help}, or ask as root: sudo hopline proxy …")]
    Refused {
        /// Name in the query.
        name: String,
        /// User of the query.
        user: u32,
        /// Advice for the administrator.
        help: String,
    },
}

fn available_names(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; there: {}", names.join(", ")) }
}

/// Queries the status of the daemon `name`.
///
/// # Errors
/// If there is no such daemon, it does not answer, or this user may not query it.
pub fn query(folder: &Path, name: &str) -> Result<Status, QueryError> {
    let path = state::socket_path(folder, name);
    let asked = || {
        let stream = UnixStream::connect(&path)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        let mut text = String::new();
        stream.take(MAX_ANSWER).read_to_string(&mut text)?;
        serde_json::from_str(&text).map_err(io::Error::from)
    };
    asked().map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => refused(folder, &path, name),
        _ => {
            let (name, folder) = (name.to_owned(), folder.to_owned());
            QueryError::Absent { name, names: names(&folder), folder, error }
        }
    })
}

/// Returns the names of daemons with a socket in `folder`, sorted.
#[must_use]
pub fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let name = |entry: io::Result<fs::DirEntry>| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        name.strip_suffix(".sock").map(str::to_owned)
    };
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort_unstable();
    names
}

fn refused(folder: &Path, path: &Path, name: &str) -> QueryError {
    let help = match fs::metadata(path) {
        Ok(found) => {
            let group = accounts::group_name(found.gid()).unwrap_or_else(|| found.gid().to_string());
            format!("its `status_group` is {group}: usermod -aG {group} USER, and log in again")
        }
        Err(_) => format!("a folder on the way to its socket is closed: chmod o+x {}", folder.display()),
    };
    QueryError::Refused { name: name.to_owned(), user: geteuid().as_raw(), help }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn every_user_may_query_unless_a_group_is_configured() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hopline.sock");
        let opened = Folder::open(folder.path()).unwrap();
        drop(listen(&opened, "hopline", None).unwrap());
        assert_eq!(mode(&path), 0o666);
        let group = StatusGroup { name: "ours".into(), id: getegid().as_raw() };
        drop(listen(&opened, "hopline", Some(&group)).unwrap());
        assert_eq!((mode(&path), fs::metadata(&path).unwrap().gid()), (0o660, group.id));
        assert_eq!(names(folder.path()), ["hopline"]);
    }

    #[test]
    fn an_absent_daemon_is_reported_with_the_present_ones() {
        let folder = tempfile::tempdir().unwrap();
        drop(listen(&Folder::open(folder.path()).unwrap(), "hut", None).unwrap());
        let said = query(folder.path(), "hopline").unwrap_err().to_string();
        assert!(
            said.contains("no daemon called \"hopline\" answers") && said.contains("; there: hut"),
            "{said}"
        );
    }
}
