//! Where a daemon says how it is: a Unix socket that writes its state to whoever connects, and reads nothing.

use crate::state;
use crate::status::Status;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// How long who asks may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Listens there. What is left of a daemon that was killed goes first: who calls holds the lock.
pub(crate) fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(path)
}

/// Answers whoever connects, one after another.
pub(crate) fn serve(listener: &UnixListener, status: impl Fn() -> Status) -> io::Result<()> {
    loop {
        match listener.accept() {
            Ok((mut stream, _)) => drop(answer(&mut stream, &status())),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn answer(stream: &mut UnixStream, status: &Status) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(serde_json::to_string(status).expect("words and numbers").as_bytes())
}

/// Asks the daemon `name` how it is.
///
/// # Errors
/// If there is none, or it does not say.
pub fn ask(folder: &Path, name: &str) -> io::Result<Status> {
    let mut stream = UnixStream::connect(state::socket(folder, name))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    serde_json::from_str(&text).map_err(io::Error::from)
}
