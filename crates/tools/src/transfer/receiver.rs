//! Receiver of a file transfer, as a sans-I/O machine over frames.

use super::account::{self, Account};
use super::batch::{Batch, Complete, Entry, Rules};
use super::error::Error;
use super::frame::{Content, Frame, Number, Offer, VERSION, WINDOW};
use super::hashing::{self, Stamp};
use super::part::Part;
use super::path::{PathProblem, RelativePath};
use super::permitted::{Existing, Origin, Permitted};
use super::reason::{Reason, Refusal};
use super::store::{Directory, Found};
use super::trouble::{Trouble, exists};
use super::{Outcome, Summary, Watch};
use crate::printable::brief;
use blake3::Hash;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;

/// Maximum number of partial files open for offers that have not started: each takes descriptors.
const MOST_RESUMED: usize = 2;

/// Maximum number of recorded paths of offered files that existed already.
const MOST_RECOGNISED: usize = 1 << 16;

/// Maximum number of offers with unacceptable paths in a conversation. Senders of this project make none.
const MOST_UNUSABLE: u64 = 256;

/// Receiving side of a conversation: processes frames, returns replies, and stores files in a [`Directory`].
///
/// Offers are answered in order. [`settle`](Self::settle) writes complete files to the disk, several at once.
#[derive(Debug)]
pub struct Receiver<'a> {
    directory: &'a Directory,
    rules: Rules,
    /// Bytes that may still be accepted.
    bytes_left: u64,
    entries_left: u64,
    state: State,
    /// Number of the next offer.
    next: Number,
    /// Offers without an answer.
    waiting: VecDeque<(Number, RelativePath, Offer)>,
    /// Accepted offers with data that have not started.
    accepted: BTreeMap<Number, Accepted>,
    current: Option<Current>,
    batch: Batch,
    replies: VecDeque<Frame>,
    summary: Summary,
    /// Account that is charged for hashing.
    account: Account,
    /// Digests of the paths of files that existed already: offering one again is no progress.
    recognised: BTreeSet<u64>,
    /// Files that were stored, or recognised for the first time.
    finished: u64,
    /// Offers with unacceptable paths.
    unusable: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitHello,
    Open,
    Over,
    /// It ended with an error.
    Broken,
}

#[derive(Debug)]
enum Accepted {
    /// The receiver has no data of it.
    New(RelativePath, Offer),
    /// An earlier transfer left data.
    Resumed(Box<Incoming>),
}

/// File of the incoming data.
#[derive(Debug)]
enum Current {
    Receiving(Number, Box<Incoming>),
    /// It was rejected in the middle. The rest is discarded.
    Refused(Number),
}

/// A file that is being received.
#[derive(Debug)]
struct Incoming {
    path: RelativePath,
    offer: Offer,
    part: Part,
}

impl<'a> Receiver<'a> {
    /// Creates a receiver that waits for a sender's hello.
    #[must_use]
    pub fn new(directory: &'a Directory, permitted: Permitted) -> Self {
        Self {
            directory,
            rules: Rules { existing: permitted.existing, origin: permitted.origin },
            bytes_left: permitted.bytes,
            entries_left: permitted.entries,
            state: State::AwaitHello,
            next: 0,
            waiting: VecDeque::new(),
            accepted: BTreeMap::new(),
            current: None,
            batch: Batch::default(),
            replies: VecDeque::new(),
            summary: Summary::default(),
            account: Account::default(),
            recognised: BTreeSet::new(),
            finished: 0,
            unusable: 0,
        }
    }

    /// Charges hashed bytes to `account`.
    pub(super) fn paid_by(self, account: Account) -> Self {
        Self { account, ..self }
    }

    /// Returns the number of files that were stored, or recognised for the first time.
    pub(super) const fn finished(&self) -> u64 {
        self.finished
    }

    /// Returns whether the sender has ended the conversation.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// Returns the statistics so far.
    #[must_use]
    pub const fn summary(&self) -> Summary {
        self.summary
    }

    /// Returns the next reply.
    pub fn poll(&mut self) -> Option<Frame> {
        self.replies.pop_front()
    }

    /// Processes a frame.
    ///
    /// # Errors
    ///
    /// The conversation has failed; every further frame fails too. Received data of a file are kept.
    pub fn handle(&mut self, frame: Frame, watch: &mut dyn Watch) -> Result<(), Error> {
        if self.batch.is_full() {
            self.settle(watch)?;
        }
        self.take(frame, watch).inspect_err(|_| self.give_up())
    }

    /// Writes complete files to the disk and confirms them. Call it when no further frame is available at once.
    ///
    /// # Errors
    ///
    /// As [`handle`](Self::handle).
    pub fn settle(&mut self, watch: &mut dyn Watch) -> Result<(), Error> {
        let mut failed = Ok(());
        for (Entry { number, path, what }, settled) in self.batch.commit(self.rules, watch) {
            match (settled, what) {
                (Ok(()), Complete::File { .. }) => {
                    self.summary.stored += 1;
                    self.finished += 1;
                    watch.ended(&path, &Outcome::Stored);
                    self.replies.push_back(Frame::Done(number));
                }
                (Ok(()), Complete::Directory(_)) => {
                    watch.ended(&path, &Outcome::Made);
                    self.replies.push_back(Frame::Done(number));
                }
                (Err(Trouble::Refuse(refusal)), _) => self.refuse(number, &path, refusal, watch),
                (Err(Trouble::Fail(error)), _) => failed = failed.and(Err(error)),
            }
        }
        failed.inspect_err(|_| self.give_up())
    }

    /// Abandons incomplete files, which are kept as they are. Complete files can still be settled.
    fn give_up(&mut self) {
        self.state = State::Broken;
        self.current = None;
        self.accepted.clear();
        self.waiting.clear();
    }

    fn take(&mut self, frame: Frame, watch: &mut dyn Watch) -> Result<(), Error> {
        match (self.state, frame) {
            (_, Frame::Fail(refusal)) => Err(Error::Peer(refusal)),
            (State::AwaitHello, Frame::Hello { version, .. }) => {
                super::check_version(version)?;
                self.state = State::Open;
                self.replies.push_back(Frame::Hello { version: VERSION, sender: None });
                Ok(())
            }
            (State::Open, Frame::Offer(number, offer)) => self.offered(number, offer, watch),
            (State::Open, Frame::Start { number, offset }) => self.start(number, offset, watch),
            (State::Open, Frame::Data(data)) => self.data(&data, watch),
            (State::Open, Frame::End { hash }) => self.end(hash, watch),
            (State::Open, Frame::Abandon { number, why }) => self.abandoned(number, why, watch),
            (State::Open, Frame::Bye) => {
                self.settle(watch)?;
                if !self.waiting.is_empty() || !self.accepted.is_empty() || self.current.is_some() {
                    return Err(super::out_of_turn(&Frame::Bye));
                }
                self.replies.push_back(Frame::Bye);
                self.state = State::Over;
                Ok(())
            }
            (_, frame) => Err(super::out_of_turn(&frame)),
        }
    }

    fn offered(&mut self, number: Number, offer: Offer, watch: &mut dyn Watch) -> Result<(), Error> {
        let unanswered =
            self.waiting.len() + self.accepted.len() + self.batch.len() + usize::from(self.current.is_some());
        if number != self.next || unanswered >= WINDOW {
            return Err(super::out_of_turn(&Frame::Offer(number, offer)));
        }
        self.next = self.next.wrapping_add(1);
        self.entries_left = self
            .entries_left
            .checked_sub(1)
            .ok_or_else(|| Error::TooMuch("more files than are permitted here".into()))?;
        match RelativePath::parse(&offer.path) {
            Ok(path) => self.waiting.push_back((number, path, offer)),
            Err(problem) => self.unusable(number, &offer.path, problem, watch)?,
        }
        self.answer(watch)
    }

    /// Rejects an unacceptable path.
    fn unusable(
        &mut self,
        number: Number,
        path: &[u8],
        problem: PathProblem,
        watch: &mut dyn Watch,
    ) -> Result<(), Error> {
        let text = format!("{}: a path that is not taken: {problem}", brief(path));
        self.summary.refused += 1;
        self.unusable += 1;
        let refusal = Refusal::new(Reason::Path, text);
        watch.unnameable(&refusal);
        self.replies.push_back(Frame::Refuse(number, refusal));
        if self.unusable > MOST_UNUSABLE {
            let text = format!("more than {MOST_UNUSABLE} paths that are not taken");
            return Err(Error::Protocol(text));
        }
        Ok(())
    }

    /// Answers the waiting offers, within the limit of open partial files.
    fn answer(&mut self, watch: &mut dyn Watch) -> Result<(), Error> {
        while let Some((number, path, offer)) = self.waiting.pop_front() {
            let resumed = self.accepted.values().filter(|it| matches!(it, Accepted::Resumed(_))).count();
            if resumed >= MOST_RESUMED && self.directory.has_part(&path, &offer).unwrap_or(true) {
                self.waiting.push_front((number, path, offer));
                break;
            }
            match self.consider(number, &path, offer, watch) {
                Ok(()) => {}
                Err(Trouble::Fail(error)) => return Err(error),
                Err(Trouble::Refuse(refusal)) => self.refuse(number, &path, refusal, watch),
            }
        }
        Ok(())
    }

    /// Answers an offer with a valid path.
    fn consider(
        &mut self,
        number: Number,
        path: &RelativePath,
        offer: Offer,
        watch: &mut dyn Watch,
    ) -> Result<(), Trouble> {
        if let (Origin::Stranger, Some(oddity)) = (self.rules.origin, path.oddity()) {
            let text =
                format!("{path}: {oddity}; the receiver takes it only from a sender whose key it knows");
            return Err(Trouble::refuse(oddity.reason(), text));
        }
        let size = match offer.content {
            Content::Directory => {
                let what = Complete::Directory(self.directory.make(path)?);
                self.batch.push(Entry { number, path: path.clone(), what });
                return Ok(());
            }
            Content::File { size, .. } => Some(size),
            Content::Stream => None,
        };
        if self.is_here(path, &offer, watch)? {
            self.summary.present += 1;
            self.recognise(path, size);
            watch.recognised(size.unwrap_or(0));
            watch.ended(path, &Outcome::Present);
            self.replies.push_back(Frame::Have(number));
            return Ok(());
        }
        let bytes_left = self.bytes_left.checked_sub(size.unwrap_or(0)).ok_or_else(|| {
            let text = format!("{path}: it has more bytes than are permitted here");
            Trouble::refuse(Reason::TooMuch, text)
        })?;
        let resumed = self.resumed(path, &offer, watch)?;
        let here = resumed.as_ref().map_or(0, |incoming| incoming.part.here());
        if let Some(size) = size {
            self.directory.can_hold(path, size, resumed.is_some().then_some(here))?;
        }
        let prefix = resumed.as_ref().map_or_else(|| blake3::hash(b""), |incoming| incoming.part.hash());
        self.bytes_left = bytes_left;
        let accepted = resumed.map_or_else(|| Accepted::New(path.clone(), offer), Accepted::Resumed);
        self.accepted.insert(number, accepted);
        self.replies.push_back(Frame::Accept { number, offset: here, prefix });
        Ok(())
    }

    /// Returns the partial file of an earlier transfer.
    fn resumed(
        &self,
        path: &RelativePath,
        offer: &Offer,
        watch: &mut dyn Watch,
    ) -> Result<Option<Box<Incoming>>, Trouble> {
        match offer.content {
            // A partial stream cannot be assigned to a new one.
            Content::File { size, .. } if self.directory.has_part(path, offer)? => {
                let mut part = self.directory.part(path, offer)?;
                part.resume(size, &self.account, &mut || watch.working())?;
                let (path, offer) = (path.clone(), offer.clone());
                Ok(Some(Box::new(Incoming { path, offer, part })))
            }
            _ => Ok(None),
        }
    }

    /// Returns whether the identical file exists; an error if another one exists and must not be replaced.
    fn is_here(&self, path: &RelativePath, offer: &Offer, watch: &mut dyn Watch) -> Result<bool, Trouble> {
        match self.directory.existing(path)? {
            None => Ok(false),
            Some(Found::Directory) => {
                Err(Trouble::refuse(Reason::Exists, format!("{path}: there is a directory of that name")))
            }
            Some(Found::File(mut file, found)) => match offer.content {
                Content::File { size, hash } if size == found => {
                    let is_same = self.hash_of(path, &mut file, watch)? == hash;
                    if is_same { Ok(true) } else { self.in_the_way(path) }
                }
                _ => self.in_the_way(path),
            },
            Some(Found::Other) => self.in_the_way(path),
        }
    }

    /// Returns the hash of a file in its place.
    fn hash_of(&self, path: &RelativePath, file: &mut File, watch: &mut dyn Watch) -> Result<Hash, Trouble> {
        let doing = format!("reading {path}");
        let stamp = Stamp::of(file).map_err(|e| Trouble::of(doing.as_str(), e))?;
        if let Some(known) = hashing::FILES.get(&stamp) {
            return Ok(known);
        }
        if !self.account.may_hash() {
            return Err(Trouble::refuse(Reason::Busy, format!("{path}: {}", account::BUSY)));
        }
        let before = (stamp, hashing::time_of_day());
        let (_, hasher) = self.account.hash(file, &doing, &mut || watch.working())?;
        let hash = hasher.finalize();
        hashing::FILES.remember_read(before, file, hash);
        Ok(hash)
    }

    /// Records a file that existed already. The first time, it counts as progress for the cost of its hash.
    fn recognise(&mut self, path: &RelativePath, size: Option<u64>) {
        let digest = *blake3::hash(path.as_bytes()).as_bytes().first_chunk().expect("a hash has 32 bytes");
        if self.recognised.len() >= MOST_RECOGNISED {
            self.recognised.clear();
        }
        if self.recognised.insert(u64::from_be_bytes(digest)) {
            self.finished += 1;
            self.account.credit(size.unwrap_or(0));
        }
    }

    fn in_the_way(&self, path: &RelativePath) -> Result<bool, Trouble> {
        match self.rules.existing {
            Existing::Refuse => Err(exists(path)),
            Existing::Replace => Ok(false),
        }
    }

    fn start(&mut self, number: Number, offset: u64, watch: &mut dyn Watch) -> Result<(), Error> {
        let accepted = self.accepted.remove(&number).filter(|_| self.current.is_none());
        let accepted = accepted.ok_or_else(|| super::out_of_turn(&Frame::Start { number, offset }))?;
        let path = match &accepted {
            Accepted::New(path, _) => path.clone(),
            Accepted::Resumed(incoming) => incoming.path.clone(),
        };
        match self.opened(accepted, offset) {
            Ok(incoming) => {
                let size = match incoming.offer.content {
                    Content::File { size, .. } => Some(size),
                    Content::Stream | Content::Directory => None,
                };
                watch.begun(&path, size, offset);
                self.current = Some(Current::Receiving(number, incoming));
            }
            Err(Trouble::Fail(error)) => return Err(error),
            Err(Trouble::Refuse(refusal)) => {
                self.refuse(number, &path, refusal, watch);
                self.current = Some(Current::Refused(number));
            }
        }
        self.answer(watch)
    }

    /// Opens an accepted file for data after `offset` bytes.
    fn opened(&self, accepted: Accepted, offset: u64) -> Result<Box<Incoming>, Trouble> {
        let mut incoming = match accepted {
            Accepted::Resumed(incoming) => incoming,
            Accepted::New(path, offer) => {
                let mut part = self.directory.part(&path, &offer)?;
                part.rewind()?;
                Box::new(Incoming { path, offer, part })
            }
        };
        if offset != incoming.part.here() {
            if offset != 0 {
                return Err(Trouble::Fail(Error::Protocol("it starts where nothing was accepted".into())));
            }
            incoming.part.rewind()?;
        }
        Ok(incoming)
    }

    fn data(&mut self, data: &[u8], watch: &mut dyn Watch) -> Result<(), Error> {
        let (number, incoming) = match &mut self.current {
            Some(Current::Receiving(number, incoming)) => (*number, incoming),
            Some(Current::Refused(_)) => return Ok(()),
            None => return Err(super::out_of_turn(&Frame::Data(Vec::new()))),
        };
        let more = data.len() as u64;
        match incoming.offer.content {
            Content::File { size, .. } if more > size - incoming.part.here() => {
                return Err(Error::TooMuch(format!("{}: more bytes came than were offered", incoming.path)));
            }
            Content::File { .. } => {}
            Content::Stream | Content::Directory => {
                self.bytes_left = self.bytes_left.checked_sub(more).ok_or_else(|| {
                    Error::TooMuch(format!("{}: more bytes came than are permitted here", incoming.path))
                })?;
            }
        }
        match incoming.part.write(data) {
            Ok(()) => {
                self.summary.bytes += more;
                watch.advanced(more);
                Ok(())
            }
            Err(Trouble::Fail(error)) => Err(error),
            Err(Trouble::Refuse(refusal)) => {
                let path = incoming.path.clone();
                self.current = Some(Current::Refused(number));
                self.refuse(number, &path, refusal, watch);
                Ok(())
            }
        }
    }

    fn end(&mut self, hash: Hash, watch: &mut dyn Watch) -> Result<(), Error> {
        let (number, incoming) = match self.current.take() {
            Some(Current::Receiving(number, incoming)) => (number, incoming),
            Some(Current::Refused(_)) => return Ok(()),
            None => return Err(super::out_of_turn(&Frame::End { hash })),
        };
        let Incoming { path, offer, mut part } = *incoming;
        let (here, found) = (part.here(), part.hash());
        let whole = match offer.content {
            Content::File { size, hash: offered } => here == size && found == offered && found == hash,
            Content::Stream | Content::Directory => found == hash,
        };
        if whole {
            self.account.credit(here);
            self.batch.push(Entry { number, path, what: Complete::File { part, offer, hash } });
        } else {
            part.discard();
            let text = format!("{path}: what arrived does not match its checksum; it was thrown away");
            self.refuse(number, &path, Refusal::new(Reason::Checksum, text), watch);
        }
        Ok(())
    }

    fn abandoned(&mut self, number: Number, why: String, watch: &mut dyn Watch) -> Result<(), Error> {
        let (path, part) = match (self.current.take(), self.accepted.remove(&number)) {
            (Some(Current::Refused(refused)), None) if refused == number => return Ok(()),
            (Some(Current::Receiving(current, incoming)), None) if current == number => {
                (incoming.path, Some(incoming.part))
            }
            (current, Some(accepted)) => {
                self.current = current;
                match accepted {
                    Accepted::New(path, _) => (path, None),
                    Accepted::Resumed(incoming) => (incoming.path, Some(incoming.part)),
                }
            }
            _ => return Err(super::out_of_turn(&Frame::Abandon { number, why })),
        };
        if let Some(mut part) = part {
            part.discard();
        }
        self.summary.refused += 1;
        watch.ended(&path, &Outcome::Refused(Refusal::new(Reason::Checksum, why)));
        self.answer(watch)
    }

    fn refuse(&mut self, number: Number, path: &RelativePath, refusal: Refusal, watch: &mut dyn Watch) {
        self.summary.refused += 1;
        watch.ended(path, &Outcome::Refused(refusal.clone()));
        self.replies.push_back(Frame::Refuse(number, refusal));
    }
}
