//! Files over any reliable stream of bytes: `hopline send` and `hopline recv`.
//!
//! [`Sender`] and [`Receiver`] are machines over [`Frame`]s; [`send`] and [`receive`] drive them over a stream. What
//! travels is described in `docs/transfer.md`. What arrives is kept in a partial file named after its content, so that
//! another conversation goes on where a broken one stopped, and a file takes its place only when its BLAKE3 hash is right
//! and it is on the disk.

mod account;
mod batch;
mod conversations;
mod error;
mod frame;
mod frames;
mod hashing;
mod identity;
mod made;
mod oddity;
mod outgoing;
mod outlet;
mod part;
mod parts;
mod path;
mod permitted;
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
mod trouble;

pub use conversations::{Conversations, Limits, Party, Seat};
pub use error::Error;
pub use frame::{
    Content, Frame, FrameError, HEADER, MAX_DATA, MAX_TEXT, Modified, Number, Offer, VERSION, WINDOW,
};
pub use frames::Caller;
pub use identity::SenderId;
pub use oddity::Oddity;
pub use outgoing::CHUNK;
pub use parts::FoundPart;
pub use path::{MAX_DEPTH, MAX_NAME, MAX_PATH, PathProblem, RelativePath};
pub use permitted::{Existing, Origin, Permitted};
pub use reason::{Reason, Refusal};
pub use receiver::Receiver;
pub use sender::Sender;
pub use source::{Skipped, Source, Unsendable};
pub use store::Directory;
pub use stream::{Shared, receive, send, turn_away};

/// Is told how a transfer goes, on either side.
pub trait Watch {
    /// A file begins after the first `offset` bytes, which the receiver has; a `size` of `None` is not known before its end.
    fn begun(&mut self, path: &RelativePath, size: Option<u64>, offset: u64) {
        let _ = (path, size, offset);
    }

    /// So many bytes more of it were sent or written.
    fn advanced(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// A file of so many bytes was there already.
    fn recognised(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// What became of a file or directory, whether it had begun or not.
    fn ended(&mut self, path: &RelativePath, outcome: &Outcome) {
        let _ = (path, outcome);
    }

    /// Receiver: something was refused for its path alone.
    fn unnameable(&mut self, refusal: &Refusal) {
        let _ = refusal;
    }

    /// Receiver: a file is being hashed or written to the disk, which may take long. Called several times a second meanwhile.
    ///
    /// # Errors
    ///
    /// Reason to stop. What is being written to the disk is completed all the same.
    fn working(&mut self) -> Result<(), Error> {
        if self.interrupted() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Whether to stop; asked between frames, and whenever a read gives `WouldBlock`.
    fn interrupted(&self) -> bool {
        false
    }
}

/// A watch that sees nothing.
impl Watch for () {}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in its place, as it was sent.
    Stored,
    /// A directory: it is there.
    Made,
    /// It had been there before, the very same.
    Present,
    /// It was not taken, or could not be sent.
    Refused(Refusal),
}

/// What became of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that were stored.
    pub stored: u64,
    /// Files that had been there.
    pub present: u64,
    /// Files and directories that were refused or could not be sent.
    pub refused: u64,
    /// Bytes of files that travelled in this conversation.
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

/// A frame that the state has no use for.
fn out_of_turn(frame: &Frame) -> Error {
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
