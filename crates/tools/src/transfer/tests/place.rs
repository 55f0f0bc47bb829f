//! Shared helpers for tests of transfers, within the crate and outside.

use super::*;
use std::fs;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use tempfile::TempDir;

/// Two directories: one to send from, and one to receive into.
pub(super) struct TestFolders {
    pub(super) from: TempDir,
    pub(super) to: TempDir,
}

impl TestFolders {
    pub(super) fn new() -> Self {
        Self { from: tempfile::tempdir().unwrap(), to: tempfile::tempdir().unwrap() }
    }

    /// Returns a place with one file to send, `f`.
    pub(super) fn with(content: &[u8]) -> Self {
        let place = Self::new();
        fs::write(place.from.path().join("f"), content).unwrap();
        place
    }

    pub(super) fn source(&self) -> Source {
        Source::of_path(&self.from.path().join("f"), None).unwrap()
    }

    pub(super) fn received(&self) -> Vec<u8> {
        fs::read(self.to.path().join("f")).unwrap()
    }

    pub(super) fn directory(&self) -> Directory {
        Directory::open(self.to.path()).unwrap()
    }

    /// Transfers `f` in memory.
    pub(super) fn transfer(&self) -> (Summary, Summary) {
        transfer_in_memory(self.source(), &self.directory(), Permissions::default()).unwrap()
    }

    /// Returns the names in the receiver's directory.
    pub(super) fn names(&self) -> Vec<String> {
        names(self.to.path())
    }
}

pub(super) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns `len` bytes that do not repeat.
pub(super) fn bytes(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

/// Runs both state machines in memory: every frame is encoded and decoded.
pub(super) fn transfer_in_memory(
    source: Source,
    directory: &Directory,
    permitted: Permissions,
) -> Result<(Summary, Summary), Error> {
    let mut sender = Sender::new(source);
    let mut receiver = Receiver::new(directory, permitted);
    exchange(&mut sender, &mut receiver, usize::MAX, |frame| frame)?;
    assert!(receiver.is_over());
    Ok((sender.summary(), receiver.summary()))
}

/// Passes at most `frames` frames from the sender to the receiver, each altered by `change`, and the replies back.
/// Returns whether the conversation has ended.
pub(super) fn exchange(
    sender: &mut Sender,
    receiver: &mut Receiver<'_>,
    frames: usize,
    mut change: impl FnMut(Frame) -> Frame,
) -> Result<bool, Error> {
    let through = |frame: Frame| Frame::decode(&frame.encode()).unwrap().unwrap().0;
    for _ in 0..frames {
        if sender.is_over() {
            return Ok(true);
        }
        let frame = sender.poll_frame(&mut ())?.expect("the receiver has answered");
        receiver.handle_frame(change(through(frame)), &mut ())?;
        receiver.settle(&mut ())?;
        while let Some(reply) = receiver.poll_frame() {
            sender.handle_frame(through(reply), &mut ())?;
        }
    }
    Ok(sender.is_over())
}

/// Runs a sender and a receiver on threads connected by sockets. Returns both results.
pub(super) fn transfer_over_sockets(
    source: Source,
    directory: &Directory,
    permitted: Permissions,
) -> (Result<Summary, Error>, Result<Summary, Error>) {
    let (here, there) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        let receiving = scope.spawn(move || {
            let received = receive(&there, &there, directory, permitted, &Slot::independent(), &mut ());
            there.shutdown(Shutdown::Both).unwrap();
            received
        });
        let here = Shared::new(here);
        let sent = send(here.clone(), here.clone(), source, None, &mut ());
        here.get().shutdown(Shutdown::Both).unwrap();
        (sent, receiving.join().unwrap())
    })
}
