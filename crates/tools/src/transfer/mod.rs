//! File transfer over any reliable byte stream: `hopline send` and `hopline recv`.
//!
//! [`Sender`] and [`Receiver`] are state machines over [`Frame`]s; [`send`] and [`receive`] run them over a stream.
//! `docs/transfer.md` describes the protocol. Incoming data go to a partial file named after its content, so that another
//! conversation can resume a broken one. A file is moved to its place only after its BLAKE3 hash has been verified and it
//! is on the disk.

mod account;
mod batch;
mod conversations;
mod created_directories;
mod error;
mod file_failure;
mod frame;
mod frame_writer;
mod frames;
mod hashing;
mod identity;
mod odd_names;
mod outgoing;
mod part;
mod parts;
mod path;
mod permissions;
mod quota;
mod reason;
mod receiver;
mod sender;
mod silence;
mod source;
mod store;
mod stream;
#[cfg(test)]
mod tests;

pub use conversations::{ConversationPeer, Conversations, Limits, Slot};
pub use error::Error;
pub use frame::{Content, Frame, FrameError, HEADER, MAX_DATA, Modified, Number, Offer, VERSION, WINDOW};
pub use frames::PendingPeer;
pub use identity::SenderId;
pub use odd_names::OddName;
pub use outgoing::CHUNK;
pub use parts::FoundPart;
pub use path::{MAX_DEPTH, MAX_NAME, MAX_PATH, PathProblem, RelativePath};
pub use permissions::{Existing, Origin, Permissions};
pub use reason::{MAX_TEXT, Reason, Refusal};
pub use receiver::Receiver;
pub use sender::Sender;
pub use source::{Skipped, Source, Unsendable};
pub use store::Directory;
pub use stream::{Shared, receive, reject, send};

/// Observer of a transfer, on either side.
pub trait Observer {
    /// A file starts after the first `offset` bytes, which the receiver has. A `size` of `None` is unknown until the end.
    fn file_started(&mut self, path: &RelativePath, size: Option<u64>, offset: u64) {
        let _ = (path, size, offset);
    }

    /// Another `bytes` bytes of the file were sent or written.
    fn handle_progress(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// A file of `bytes` bytes existed already.
    fn already_present(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// A file or directory has ended, with this outcome. It need not have begun.
    fn ended(&mut self, path: &RelativePath, outcome: &Outcome) {
        let _ = (path, outcome);
    }

    /// Receiver: an offer was rejected because of its path.
    fn path_rejected(&mut self, refusal: &Refusal) {
        let _ = refusal;
    }

    /// Receiver: a file is being hashed or written to the disk, which may take long. Called several times a second
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// Reason to stop. A write to the disk is still completed.
    fn working(&mut self) -> Result<(), Error> {
        if self.interrupted() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Returns whether to stop. Called between frames, and whenever a read returns `WouldBlock`.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Observer that ignores all events.
impl Observer for () {}

/// Outcome of an offered file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The file is in its place.
    Stored,
    /// The directory exists.
    Made,
    /// The identical file existed already.
    Present,
    /// It was rejected, or could not be sent.
    Refused(Refusal),
}

/// Statistics of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that were stored.
    pub stored: u64,
    /// Files that existed already.
    pub present: u64,
    /// Files and directories that were rejected or could not be sent.
    pub refused: u64,
    /// Bytes of files transferred in this conversation.
    pub bytes: u64,
}

fn check_version(version: u8) -> Result<(), Error> {
    if version == VERSION {
        return Ok(());
    }
    Err(Error::Protocol(format!(
        "it speaks version {version} of the file transfer, and this is version {VERSION}: update the older one"
    )))
}

/// Returns the error for a frame that is not allowed in the current state.
fn unexpected_frame(frame: &Frame) -> Error {
    let name = match frame {
        Frame::Hello { .. } => "HELLO",
        Frame::Offer(..) => "OFFER",
        Frame::Accept { .. } => "ACCEPT",
        Frame::Have(_) => "HAVE",
        Frame::Refuse(..) => "REFUSE",
        Frame::Start { .. } => "START",
        Frame::Data(_) => "DATA",
        Frame::End { .. } => "END",
        Frame::Abandon { .. } => "ABANDON",
        Frame::Done(_) => "DONE",
        Frame::Fail(_) => "FAIL",
        Frame::Bye => "BYE",
        Frame::Working => "WORKING",
    };
    Error::Protocol(format!("{name} came out of turn"))
}
