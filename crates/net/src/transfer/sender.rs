use super::error::Error;
use super::frame::{Content, Frame, Modified, Offer, Reason, Refusal, VERSION};
use super::hashing::hash_into;
use super::identity::SenderId;
use super::path::RelativePath;
use super::source::{self, Item, Source, What};
use super::{Outcome, Summary, Watch};
use crate::printable::shown;
use blake3::{Hash, Hasher};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of a file in a frame: 12 bytes of header are less than 0.1 % of them, and a break loses no more.
pub const CHUNK: usize = 16 << 10;
/// The mode of what has none.
const STREAM_MODE: u16 = 0o644;

/// The sending side of a conversation: gives frames as long as it may, and takes replies.
#[derive(Debug)]
pub struct Sender {
    identity: Option<SenderId>,
    items: VecDeque<Item>,
    state: State,
    summary: Summary,
}

#[derive(Debug)]
enum State {
    Hello,
    AwaitHello,
    Next,
    AwaitVerdict(RelativePath, Option<Outgoing>),
    /// What the receiver has is the beginning of the file, or nothing is.
    Start(RelativePath, Outgoing, Hasher, u64),
    Sending(RelativePath, Outgoing, Hasher),
    /// The file cannot be sent to its end, and why.
    GiveUp(RelativePath, String),
    AwaitStored(RelativePath),
    AwaitBye,
    Over,
    /// It ended with an error.
    Broken,
}

/// What is open to be sent.
enum Outgoing {
    File { file: File, size: u64, hash: Hash, modified: Modified, left: u64 },
    Stream(Box<dyn Read + Send>),
}

impl std::fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { size, left, .. } => write!(f, "File({left} of {size} bytes left)"),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl Sender {
    /// A sender that has not said hello yet.
    #[must_use]
    pub fn new(source: Source) -> Self {
        Self {
            identity: source.identity,
            items: source.items.into(),
            state: State::Hello,
            summary: Summary::default(),
        }
    }

    /// Whether everything was offered, and the receiver knows.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// What was sent so far.
    #[must_use]
    pub const fn summary(&self) -> Summary {
        self.summary
    }

    /// The next frame to send; `None`: a reply is due first, a stream has nothing for now (`WouldBlock`), or it is over.
    ///
    /// # Errors
    ///
    /// If a stream cannot be read. A file that cannot be is left out, and counted as refused.
    pub fn poll(&mut self, watch: &mut dyn Watch) -> Result<Option<Frame>, Error> {
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Hello => {
                self.state = State::AwaitHello;
                Ok(Some(Frame::Hello { version: VERSION, sender: self.identity }))
            }
            State::Next => Ok(Some(self.offer(watch))),
            State::Start(path, outgoing, hasher, offset) => {
                watch.begun(&path, outgoing.size(), offset);
                self.state = State::Sending(path, outgoing, hasher);
                Ok(Some(Frame::Start { offset }))
            }
            State::Sending(path, outgoing, hasher) => self.data(path, outgoing, hasher, watch),
            State::GiveUp(path, why) => Ok(Some(self.give_up(&path, why, watch))),
            waiting => {
                self.state = waiting;
                Ok(None)
            }
        }
    }

    /// Takes a reply.
    ///
    /// # Errors
    ///
    /// The conversation has failed; every further frame fails too.
    pub fn handle(&mut self, frame: Frame, watch: &mut dyn Watch) -> Result<(), Error> {
        let state = std::mem::replace(&mut self.state, State::Broken);
        self.state = match (state, frame) {
            (_, Frame::Fail(refusal)) => return Err(Error::Peer(refusal)),
            (State::AwaitHello, Frame::Hello { version, .. }) => {
                super::check_version(version)?;
                State::Next
            }
            (State::AwaitVerdict(path, Some(outgoing)), Frame::Accept { offset, prefix }) => {
                return self.accepted(path, outgoing, offset, prefix);
            }
            (State::AwaitVerdict(path, Some(Outgoing::File { .. })), Frame::Have) => {
                self.summary.present += 1;
                watch.ended(&path, &Outcome::Present);
                State::Next
            }
            (State::AwaitVerdict(path, None), Frame::Done) => {
                watch.ended(&path, &Outcome::Stored);
                State::Next
            }
            (State::AwaitStored(path), Frame::Done) => {
                self.summary.stored += 1;
                watch.ended(&path, &Outcome::Stored);
                State::Next
            }
            (State::AwaitVerdict(path, _) | State::AwaitStored(path), Frame::Refuse(refusal)) => {
                self.left_out(&path, refusal, watch);
                State::Next
            }
            (State::AwaitBye, Frame::Bye) => State::Over,
            (_, frame) => return Err(super::out_of_turn(&frame)),
        };
        Ok(())
    }

    /// Offers the next thing that can be opened, or says goodbye.
    fn offer(&mut self, watch: &mut dyn Watch) -> Frame {
        while let Some(Item { path, what }) = self.items.pop_front() {
            let (content, outgoing, mode, modified) = match what {
                What::Directory => (Content::Directory, None, 0, Modified::default()),
                What::Stream(reader) => {
                    (Content::Stream, Some(Outgoing::Stream(reader)), STREAM_MODE, Modified::default())
                }
                What::File(place) => match open(&place) {
                    Ok((outgoing, content, mode, modified)) => (content, Some(outgoing), mode, modified),
                    Err(e) => {
                        let text = format!("{}: cannot be read: {e}", shown(&place));
                        self.left_out(&path, Refusal::new(Reason::System, text), watch);
                        continue;
                    }
                },
            };
            let offer = Offer { path: path.as_bytes().to_vec(), content, mode, modified };
            self.state = State::AwaitVerdict(path, outgoing);
            return Frame::Offer(offer);
        }
        self.state = State::AwaitBye;
        Frame::Bye
    }

    fn accepted(
        &mut self,
        path: RelativePath,
        mut outgoing: Outgoing,
        offset: u64,
        prefix: Hash,
    ) -> Result<(), Error> {
        let mut hasher = Hasher::new();
        let at = match &mut outgoing {
            Outgoing::File { size, .. } if offset > *size => {
                return Err(Error::Protocol("it accepted more than was offered".into()));
            }
            Outgoing::Stream(_) if offset > 0 => {
                return Err(Error::Protocol("it has the beginning of what it cannot know".into()));
            }
            Outgoing::Stream(_) => 0,
            Outgoing::File { file, size, left, .. } => match seek(file, &mut hasher, offset, prefix) {
                Ok(at) => {
                    *left = *size - at;
                    at
                }
                Err(e) => {
                    self.state = State::GiveUp(path, format!("it cannot be read: {e}"));
                    return Ok(());
                }
            },
        };
        self.state = State::Start(path, outgoing, hasher, at);
        Ok(())
    }

    /// The next bytes, or the end of them.
    fn data(
        &mut self,
        path: RelativePath,
        mut outgoing: Outgoing,
        mut hasher: Hasher,
        watch: &mut dyn Watch,
    ) -> Result<Option<Frame>, Error> {
        let mut data = Vec::with_capacity(CHUNK);
        let read = match &mut outgoing {
            Outgoing::File { file, left, .. } => file.take((*left).min(CHUNK as u64)).read_to_end(&mut data),
            // What there is goes at once: nobody knows when more comes.
            Outgoing::Stream(reader) => read_some(reader, &mut data),
        };
        match (read, &mut outgoing) {
            (Err(e), Outgoing::Stream(_)) if e.kind() == io::ErrorKind::WouldBlock => {
                self.state = State::Sending(path, outgoing, hasher);
                return Ok(None);
            }
            (Err(e), Outgoing::Stream(_)) => {
                return Err(Error::files(format!("reading what becomes {path}"), e));
            }
            (Err(e), Outgoing::File { .. }) => {
                return Ok(Some(self.give_up(&path, format!("it cannot be read: {e}"), watch)));
            }
            (Ok(0), Outgoing::File { file, size, hash, modified, left })
                if *left > 0 || *hash != hasher.finalize() || has_changed(file, *size, *modified) =>
            {
                return Ok(Some(self.give_up(&path, "it changed while it was being sent".into(), watch)));
            }
            (Ok(0), _) => {
                self.state = State::AwaitStored(path);
                return Ok(Some(Frame::End { hash: hasher.finalize() }));
            }
            (Ok(read), Outgoing::File { left, .. }) => *left -= read as u64,
            (Ok(_), Outgoing::Stream(_)) => {}
        }
        hasher.update(&data);
        self.summary.bytes += data.len() as u64;
        watch.advanced(data.len() as u64);
        self.state = State::Sending(path, outgoing, hasher);
        Ok(Some(Frame::Data(data)))
    }

    fn give_up(&mut self, path: &RelativePath, why: String, watch: &mut dyn Watch) -> Frame {
        self.state = State::Next;
        self.left_out(path, Refusal::new(Reason::Checksum, format!("{path}: {why}")), watch);
        Frame::Abandon { why }
    }

    fn left_out(&mut self, path: &RelativePath, refusal: Refusal, watch: &mut dyn Watch) {
        self.summary.refused += 1;
        self.summary.busy += u64::from(refusal.reason == Reason::Busy);
        watch.ended(path, &Outcome::Refused(refusal));
    }
}

impl Outgoing {
    const fn size(&self) -> Option<u64> {
        match self {
            Self::File { size, .. } => Some(*size),
            Self::Stream(_) => None,
        }
    }
}

/// Opens a file and reads it once, for its hash.
fn open(place: &Path) -> io::Result<(Outgoing, Content, u16, Modified)> {
    let (mut file, found) = source::open(place)?;
    let size = found.len();
    let mut hasher = Hasher::new();
    let read = hash_into(&mut hasher, &mut file, size)?;
    if read < size {
        return Err(io::Error::other("it became shorter while it was being read"));
    }
    if size == 0 && file.read(&mut [0])? > 0 {
        return Err(io::Error::other(
            "it says that it is empty, and is not; send what comes out of it with `-`",
        ));
    }
    let hash = hasher.finalize();
    let mode = (found.mode() & 0o777) as u16;
    let modified = source::modified(&found);
    let outgoing = Outgoing::File { file, size, hash, modified, left: size };
    Ok((outgoing, Content::File { size, hash }, mode, modified))
}

/// Whether it is another than when it was offered, in what has been sent already or behind it.
fn has_changed(file: &File, size: u64, modified: Modified) -> bool {
    !file.metadata().is_ok_and(|now| now.len() == size && source::modified(&now) == modified)
}

/// Puts `file` where the data goes on, and `hasher` too: after `offset` bytes if these have the hash `prefix`, otherwise at
/// the beginning.
fn seek(file: &mut File, hasher: &mut Hasher, offset: u64, prefix: Hash) -> io::Result<u64> {
    file.rewind()?;
    hash_into(hasher, file, offset)?;
    if hasher.finalize() == prefix {
        return Ok(offset);
    }
    *hasher = Hasher::new();
    file.seek(SeekFrom::Start(0))
}

/// Appends what one call of `read` gives, at most [`CHUNK`]; 0 at the end.
fn read_some(reader: &mut impl Read, data: &mut Vec<u8>) -> io::Result<usize> {
    data.resize(CHUNK, 0);
    loop {
        match reader.read(data) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            read => {
                data.truncate(*read.as_ref().unwrap_or(&0));
                return read;
            }
        }
    }
}
