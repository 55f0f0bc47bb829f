use super::error::Error;
use super::frame::{Content, Frame, Offer, Reason, Refusal, VERSION};
use super::hashing::hash_into;
use super::part::Part;
use super::path::RelativePath;
use super::permitted::{Existing, Origin, Permitted};
use super::store::{Directory, Found};
use super::trouble::{Trouble, exists};
use super::{Outcome, Summary, Watch};
use crate::printable::printable;
use blake3::{Hash, Hasher};

/// The receiving side of a conversation: takes frames, gives replies, and keeps files in a [`Directory`].
#[derive(Debug)]
pub struct Receiver<'a> {
    directory: &'a Directory,
    existing: Existing,
    origin: Origin,
    /// What may still be taken.
    bytes_left: u64,
    entries_left: u64,
    state: State,
    summary: Summary,
}

#[derive(Debug)]
enum State {
    AwaitHello,
    AwaitOffer,
    /// An offer was accepted.
    AwaitStart(Incoming),
    Receiving(Incoming),
    Over,
    /// It ended with an error.
    Broken,
}

/// A file that is being received.
#[derive(Debug)]
struct Incoming {
    path: RelativePath,
    offer: Offer,
    part: Part,
    /// Of what is in the part.
    hasher: Hasher,
    /// Bytes in the part.
    here: u64,
}

impl<'a> Receiver<'a> {
    /// A receiver that waits for a sender's hello.
    #[must_use]
    pub fn new(directory: &'a Directory, permitted: Permitted) -> Self {
        Self {
            directory,
            existing: permitted.existing,
            origin: permitted.origin,
            bytes_left: permitted.bytes,
            entries_left: permitted.entries,
            state: State::AwaitHello,
            summary: Summary::default(),
        }
    }

    /// Whether the sender said that it was everything.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// What was received so far.
    #[must_use]
    pub const fn summary(&self) -> Summary {
        self.summary
    }

    /// Takes a frame; the reply, if it has one.
    ///
    /// # Errors
    ///
    /// The conversation has failed; every further frame fails too. What has arrived of a file is kept.
    pub fn handle(&mut self, frame: Frame, watch: &mut dyn Watch) -> Result<Option<Frame>, Error> {
        let state = std::mem::replace(&mut self.state, State::Broken);
        match (state, frame) {
            (_, Frame::Fail(refusal)) => Err(Error::Peer(refusal)),
            (State::AwaitHello, Frame::Hello { version, .. }) => {
                super::check_version(version)?;
                self.state = State::AwaitOffer;
                Ok(Some(Frame::Hello { version: VERSION, sender: None }))
            }
            (State::AwaitOffer, Frame::Offer(offer)) => self.offered(offer, watch).map(Some),
            (State::AwaitOffer, Frame::Bye) => {
                self.state = State::Over;
                Ok(Some(Frame::Bye))
            }
            (State::AwaitStart(incoming), Frame::Start { offset }) => self.start(incoming, offset, watch),
            (State::Receiving(incoming), Frame::Data(data)) => self.data(incoming, &data, watch),
            (State::Receiving(incoming), Frame::End { hash }) => self.end(incoming, hash, watch).map(Some),
            (State::AwaitStart(incoming) | State::Receiving(incoming), Frame::Abandon { why }) => {
                incoming.part.discard();
                self.state = State::AwaitOffer;
                self.summary.refused += 1;
                watch.ended(&incoming.path, &Outcome::Refused(Refusal::new(Reason::Checksum, why)));
                Ok(None)
            }
            (_, frame) => Err(super::out_of_turn(&frame)),
        }
    }

    fn offered(&mut self, offer: Offer, watch: &mut dyn Watch) -> Result<Frame, Error> {
        self.state = State::AwaitOffer;
        self.entries_left = self
            .entries_left
            .checked_sub(1)
            .ok_or_else(|| Error::TooMuch("more files than are permitted here".into()))?;
        let path = match RelativePath::parse(&offer.path) {
            Ok(path) => path,
            Err(problem) => {
                let text = format!("{}: a path that is not taken: {problem}", printable(&offer.path));
                self.summary.refused += 1;
                let refusal = Refusal::new(Reason::Path, text);
                watch.unnameable(&refusal);
                return Ok(Frame::Refuse(refusal));
            }
        };
        match self.consider(&path, offer, watch) {
            Ok(reply) => Ok(reply),
            Err(Trouble::Fail(error)) => Err(error),
            Err(Trouble::Refuse(refusal)) => Ok(self.refuse(&path, refusal, watch)),
        }
    }

    /// The reply to an offer whose path is in order.
    fn consider(
        &mut self,
        path: &RelativePath,
        offer: Offer,
        watch: &mut dyn Watch,
    ) -> Result<Frame, Trouble> {
        if self.origin == Origin::Stranger && path.is_hidden() {
            let text = format!(
                "{path}: a name that begins with a dot; the receiver takes it only from a sender whose key it knows"
            );
            return Err(Trouble::refuse(Reason::Hidden, text));
        }
        let size = match offer.content {
            Content::Directory => {
                self.directory.make(path)?;
                watch.ended(path, &Outcome::Stored);
                return Ok(Frame::Done);
            }
            Content::File { size, .. } => Some(size),
            Content::Stream => None,
        };
        if self.is_here(path, &offer)? {
            self.summary.present += 1;
            watch.ended(path, &Outcome::Present);
            return Ok(Frame::Have);
        }
        if size.is_some_and(|size| size > self.bytes_left) {
            let text = format!("{path}: it has more bytes than are permitted here");
            return Err(Trouble::refuse(Reason::TooMuch, text));
        }
        let mut part = self.directory.part(path, &offer)?;
        // Nothing tells which stream an earlier one was.
        let (here, hasher) = part.prefix(size.unwrap_or(0))?;
        let left = self.directory.quota_left();
        if let Some(needed) = size.map(|size| size - here).filter(|needed| *needed > left) {
            let text = format!("{path}: needs {needed} bytes, and the receiver's quota has {left} left");
            return Err(Trouble::refuse(Reason::TooMuch, text));
        }
        let free = self.directory.free();
        if let Some(needed) = size.map(|size| size - here).filter(|needed| *needed > free) {
            let text =
                format!("{path}: needs {needed} bytes, and only {free} are free on the receiver's disk");
            return Err(Trouble::refuse(Reason::NoSpace, text));
        }
        let prefix = hasher.finalize();
        self.state = State::AwaitStart(Incoming { path: path.clone(), offer, part, hasher, here });
        Ok(Frame::Accept { offset: here, prefix })
    }

    /// Whether the very same file is in its place; trouble if another one is and has to stay.
    fn is_here(&self, path: &RelativePath, offer: &Offer) -> Result<bool, Trouble> {
        match self.directory.existing(path)? {
            None => Ok(false),
            Some(Found::Directory) => {
                Err(Trouble::refuse(Reason::Exists, format!("{path}: there is a directory of that name")))
            }
            Some(Found::File(mut file, found)) => match offer.content {
                Content::File { size, hash } if size == found => {
                    let mut hasher = Hasher::new();
                    let doing = |e| Trouble::of_io(format!("reading {path}"), e);
                    hash_into(&mut hasher, &mut file, u64::MAX).map_err(doing)?;
                    if hasher.finalize() == hash { Ok(true) } else { self.in_the_way(path) }
                }
                _ => self.in_the_way(path),
            },
            Some(Found::Other) => self.in_the_way(path),
        }
    }

    fn in_the_way(&self, path: &RelativePath) -> Result<bool, Trouble> {
        match self.existing {
            Existing::Refuse => Err(exists(path)),
            Existing::Replace => Ok(false),
        }
    }

    fn start(
        &mut self,
        mut incoming: Incoming,
        offset: u64,
        watch: &mut dyn Watch,
    ) -> Result<Option<Frame>, Error> {
        if offset != incoming.here {
            if offset != 0 {
                return Err(Error::Protocol("it starts where nothing was accepted".into()));
            }
            incoming.part.rewind().map_err(|trouble| match trouble {
                Trouble::Refuse(refusal) => Error::Protocol(refusal.text),
                Trouble::Fail(error) => error,
            })?;
            (incoming.hasher, incoming.here) = (Hasher::new(), 0);
        }
        let size = match incoming.offer.content {
            Content::File { size, .. } => {
                self.bytes_left -= size;
                Some(size)
            }
            Content::Stream | Content::Directory => None,
        };
        watch.begun(&incoming.path, size, offset);
        self.state = State::Receiving(incoming);
        Ok(None)
    }

    fn data(
        &mut self,
        mut incoming: Incoming,
        data: &[u8],
        watch: &mut dyn Watch,
    ) -> Result<Option<Frame>, Error> {
        let more = data.len() as u64;
        match incoming.offer.content {
            Content::File { size, .. } if more > size - incoming.here => {
                return Err(Error::TooMuch(format!("{}: more bytes came than were offered", incoming.path)));
            }
            Content::File { .. } => {}
            Content::Stream | Content::Directory => {
                self.bytes_left = self.bytes_left.checked_sub(more).ok_or_else(|| {
                    Error::TooMuch(format!("{}: more bytes came than are permitted here", incoming.path))
                })?;
            }
        }
        incoming.part.write(data)?;
        incoming.hasher.update(data);
        incoming.here += more;
        self.summary.bytes += more;
        watch.advanced(more);
        self.state = State::Receiving(incoming);
        Ok(None)
    }

    fn end(&mut self, incoming: Incoming, hash: Hash, watch: &mut dyn Watch) -> Result<Frame, Error> {
        self.state = State::AwaitOffer;
        let Incoming { path, offer, mut part, hasher, here } = incoming;
        let found = hasher.finalize();
        let whole = match offer.content {
            Content::File { size, hash: offered } => here == size && found == offered && found == hash,
            Content::Stream | Content::Directory => found == hash,
        };
        if !whole {
            part.discard();
            let text = format!("{path}: what arrived does not match its checksum; it was thrown away");
            return Ok(self.refuse(&path, Refusal::new(Reason::Checksum, text), watch));
        }
        match part.holds(found) {
            Ok(true) => {}
            Ok(false) => {
                part.discard();
                let text = format!("{path}: somebody else wrote to it while it arrived; it was thrown away");
                return Ok(self.refuse(&path, Refusal::new(Reason::Checksum, text), watch));
            }
            Err(Trouble::Fail(error)) => return Err(error),
            Err(Trouble::Refuse(refusal)) => return Ok(self.refuse(&path, refusal, watch)),
        }
        match part.commit(&offer, self.existing, self.origin) {
            Ok(()) => {
                self.summary.stored += 1;
                watch.ended(&path, &Outcome::Stored);
                Ok(Frame::Done)
            }
            Err(Trouble::Fail(error)) => Err(error),
            Err(Trouble::Refuse(refusal)) => Ok(self.refuse(&path, refusal, watch)),
        }
    }

    fn refuse(&mut self, path: &RelativePath, refusal: Refusal, watch: &mut dyn Watch) -> Frame {
        self.summary.refused += 1;
        watch.ended(path, &Outcome::Refused(refusal.clone()));
        Frame::Refuse(refusal)
    }
}
