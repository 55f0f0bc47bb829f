//! Receiver of a file transfer, as a sans-I/O machine over frames.

use super::account::{self, Account};
use super::batch::{Batch, Complete, Entry, Rules};
use super::error::Error;
use super::file_failure::{FileFailure, exists};
use super::frame::{Content, Frame, Number, Offer, VERSION, WINDOW};
use super::hashing::{self, FileStamp};
use super::part::Part;
use super::path::{PathProblem, RelativePath};
use super::permissions::{Existing, Origin, Permissions};
use super::reason::{Reason, Refusal};
use super::store::{Directory, ExistingEntry};
use super::{Observer, Outcome, Summary};
use crate::printable::printable_brief;
use blake3::Hash;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;

/// Maximum number of partial files open for offers that have not started: each takes descriptors.
const MAX_RESUMED: usize = 2;

/// Maximum number of recorded paths of offered files that existed already.
const MAX_RECOGNISED: usize = 1 << 16;

/// Maximum number of offers with unacceptable paths in a conversation. Senders of this project make none.
const MAX_UNUSABLE: u64 = 256;

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
    Ended,
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
    pub fn new(directory: &'a Directory, permitted: Permissions) -> Self {
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
    pub(super) fn with_account(self, account: Account) -> Self {
        Self { account, ..self }
    }

    /// Returns the number of files that were stored, or recognised for the first time.
    pub(super) const fn finished(&self) -> u64 {
        self.finished
    }

    /// Returns whether the sender has ended the conversation.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Returns the statistics so far.
    #[must_use]
    pub const fn summary(&self) -> Summary {
        self.summary
    }

    /// Returns the next reply.
    pub fn poll_frame(&mut self) -> Option<Frame> {
        self.replies.pop_front()
    }

    /// Processes a frame.
    ///
    /// # Errors
    ///
    /// The conversation has failed; every further frame fails too. Received data of a file are kept.
    pub fn handle_frame(&mut self, frame: Frame, watch: &mut dyn Observer) -> Result<(), Error> {
        if self.batch.is_full() {
            self.settle(watch)?;
        }
        self.dispatch_frame(frame, watch).inspect_err(|_| self.give_up())
    }

    /// Writes complete files to the disk and confirms them. Call it when no further frame is available at once.
    ///
    /// # Errors
    ///
    /// As [`handle_frame`](Self::handle_frame).
    pub fn settle(&mut self, watch: &mut dyn Observer) -> Result<(), Error> {
        let mut failed = Ok(());
        for (Entry { number, path, content: what }, settled) in self.batch.commit(self.rules, watch) {
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
                (Err(FileFailure::Refuse(refusal)), _) => self.refuse(number, &path, refusal, watch),
                (Err(FileFailure::Fail(error)), _) => failed = failed.and(Err(error)),
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

    fn dispatch_frame(&mut self, frame: Frame, watch: &mut dyn Observer) -> Result<(), Error> {
        match (self.state, frame) {
            (_, Frame::Fail(refusal)) => Err(Error::Peer(refusal)),
            (State::AwaitHello, Frame::Hello { version, .. }) => {
                super::check_version(version)?;
                self.state = State::Open;
                self.replies.push_back(Frame::Hello { version: VERSION, sender: None });
                Ok(())
            }
            (State::Open, Frame::Offer(number, offer)) => self.handle_offer(number, offer, watch),
            (State::Open, Frame::Start { number, offset }) => self.handle_start(number, offset, watch),
            (State::Open, Frame::Data(data)) => self.handle_data(&data, watch),
            (State::Open, Frame::End { hash }) => self.handle_end(hash, watch),
            (State::Open, Frame::Abandon { number, why }) => self.handle_abandon(number, why, watch),
            (State::Open, Frame::Bye) => {
                self.settle(watch)?;
                if !self.waiting.is_empty() || !self.accepted.is_empty() || self.current.is_some() {
                    return Err(super::unexpected_frame(&Frame::Bye));
                }
                self.replies.push_back(Frame::Bye);
                self.state = State::Ended;
                Ok(())
            }
            (_, frame) => Err(super::unexpected_frame(&frame)),
        }
    }

    fn handle_offer(&mut self, number: Number, offer: Offer, watch: &mut dyn Observer) -> Result<(), Error> {
        let unanswered =
            self.waiting.len() + self.accepted.len() + self.batch.len() + usize::from(self.current.is_some());
        if number != self.next || unanswered >= WINDOW {
            return Err(super::unexpected_frame(&Frame::Offer(number, offer)));
        }
        self.next = self.next.wrapping_add(1);
        self.entries_left = self
            .entries_left
            .checked_sub(1)
            .ok_or_else(|| Error::TooMuch("more files than are permitted here".into()))?;
        match RelativePath::parse(&offer.path) {
            Ok(path) => self.waiting.push_back((number, path, offer)),
            Err(problem) => self.reject_path(number, &offer.path, problem, watch)?,
        }
        self.answer_offers(watch)
    }

    /// Rejects an unacceptable path.
    fn reject_path(
        &mut self,
        number: Number,
        path: &[u8],
        problem: PathProblem,
        watch: &mut dyn Observer,
    ) -> Result<(), Error> {
        let text = format!("{}: a path that is not taken: {problem}", printable_brief(path));
        self.summary.refused += 1;
        self.unusable += 1;
        let refusal = Refusal::new(Reason::Path, text);
        watch.path_rejected(&refusal);
        self.replies.push_back(Frame::Refuse(number, refusal));
        if self.unusable > MAX_UNUSABLE {
            let text = format!("more than {MAX_UNUSABLE} paths that are not taken");
            return Err(Error::Protocol(text));
        }
        Ok(())
    }

    /// Answers the waiting offers, within the limit of open partial files.
    fn answer_offers(&mut self, watch: &mut dyn Observer) -> Result<(), Error> {
        while let Some((number, path, offer)) = self.waiting.pop_front() {
            let resumed = self.accepted.values().filter(|it| matches!(it, Accepted::Resumed(_))).count();
            if resumed >= MAX_RESUMED && self.directory.has_part(&path, &offer).unwrap_or(true) {
                self.waiting.push_front((number, path, offer));
                break;
            }
            match self.handle_valid_offer(number, &path, offer, watch) {
                Ok(()) => {}
                Err(FileFailure::Fail(error)) => return Err(error),
                Err(FileFailure::Refuse(refusal)) => self.refuse(number, &path, refusal, watch),
            }
        }
        Ok(())
    }

    /// Answers an offer with a valid path.
    fn handle_valid_offer(
        &mut self,
        number: Number,
        path: &RelativePath,
        offer: Offer,
        watch: &mut dyn Observer,
    ) -> Result<(), FileFailure> {
        if let (Origin::Unknown, Some(oddity)) = (self.rules.origin, path.odd_name()) {
            let text =
                format!("{path}: {oddity}; the receiver takes it only from a sender whose key it knows");
            return Err(FileFailure::refused(oddity.reason(), text));
        }
        let size = match offer.content {
            Content::Directory => {
                let what = Complete::Directory(self.directory.make(path)?);
                self.batch.push(Entry { number, path: path.clone(), content: what });
                return Ok(());
            }
            Content::File { size, .. } => Some(size),
            Content::Stream => None,
        };
        if self.is_present(path, &offer, watch)? {
            self.summary.present += 1;
            self.record_present(path, size);
            watch.already_present(size.unwrap_or(0));
            watch.ended(path, &Outcome::Present);
            self.replies.push_back(Frame::Have(number));
            return Ok(());
        }
        let bytes_left = self.bytes_left.checked_sub(size.unwrap_or(0)).ok_or_else(|| {
            let text = format!("{path}: it has more bytes than are permitted here");
            FileFailure::refused(Reason::TooMuch, text)
        })?;
        let resumed = self.open_partial(path, &offer, watch)?;
        let here = resumed.as_ref().map_or(0, |incoming| incoming.part.received());
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
    fn open_partial(
        &self,
        path: &RelativePath,
        offer: &Offer,
        watch: &mut dyn Observer,
    ) -> Result<Option<Box<Incoming>>, FileFailure> {
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
    fn is_present(
        &self,
        path: &RelativePath,
        offer: &Offer,
        watch: &mut dyn Observer,
    ) -> Result<bool, FileFailure> {
        match self.directory.existing(path)? {
            None => Ok(false),
            Some(ExistingEntry::Directory) => Err(FileFailure::refused(
                Reason::Exists,
                format!("{path}: there is a directory of that name"),
            )),
            Some(ExistingEntry::File(mut file, found)) => match offer.content {
                Content::File { size, hash } if size == found => {
                    let is_same = self.hash_of(path, &mut file, watch)? == hash;
                    if is_same { Ok(true) } else { self.is_blocked(path) }
                }
                _ => self.is_blocked(path),
            },
            Some(ExistingEntry::Other) => self.is_blocked(path),
        }
    }

    /// Returns the hash of a file in its place.
    fn hash_of(
        &self,
        path: &RelativePath,
        file: &mut File,
        watch: &mut dyn Observer,
    ) -> Result<Hash, FileFailure> {
        let doing = format!("reading {path}");
        let stamp = FileStamp::of(file).map_err(|e| FileFailure::of(doing.as_str(), e))?;
        if let Some(known) = hashing::FILE_HASHES.get(&stamp) {
            return Ok(known);
        }
        if !self.account.may_hash() {
            return Err(FileFailure::refused(Reason::Busy, format!("{path}: {}", account::BUSY_TEXT)));
        }
        let before = (stamp, hashing::time_of_day());
        let (_, hasher) = self.account.hash(file, &doing, &mut || watch.working())?;
        let hash = hasher.finalize();
        hashing::FILE_HASHES.insert_if_unchanged(before, file, hash);
        Ok(hash)
    }

    /// Records a file that existed already. The first time, it counts as progress for the cost of its hash.
    fn record_present(&mut self, path: &RelativePath, size: Option<u64>) {
        let digest = *blake3::hash(path.as_bytes()).as_bytes().first_chunk().expect("a hash has 32 bytes");
        if self.recognised.len() >= MAX_RECOGNISED {
            self.recognised.clear();
        }
        if self.recognised.insert(u64::from_be_bytes(digest)) {
            self.finished += 1;
            self.account.credit(size.unwrap_or(0));
        }
    }

    fn is_blocked(&self, path: &RelativePath) -> Result<bool, FileFailure> {
        match self.rules.existing {
            Existing::Refuse => Err(exists(path)),
            Existing::Replace => Ok(false),
        }
    }

    fn handle_start(&mut self, number: Number, offset: u64, watch: &mut dyn Observer) -> Result<(), Error> {
        let accepted = self.accepted.remove(&number).filter(|_| self.current.is_none());
        let accepted = accepted.ok_or_else(|| super::unexpected_frame(&Frame::Start { number, offset }))?;
        let path = match &accepted {
            Accepted::New(path, _) => path.clone(),
            Accepted::Resumed(incoming) => incoming.path.clone(),
        };
        match self.open_accepted(accepted, offset) {
            Ok(incoming) => {
                let size = match incoming.offer.content {
                    Content::File { size, .. } => Some(size),
                    Content::Stream | Content::Directory => None,
                };
                watch.file_started(&path, size, offset);
                self.current = Some(Current::Receiving(number, incoming));
            }
            Err(FileFailure::Fail(error)) => return Err(error),
            Err(FileFailure::Refuse(refusal)) => {
                self.refuse(number, &path, refusal, watch);
                self.current = Some(Current::Refused(number));
            }
        }
        self.answer_offers(watch)
    }

    /// Opens an accepted file for data after `offset` bytes.
    fn open_accepted(&self, accepted: Accepted, offset: u64) -> Result<Box<Incoming>, FileFailure> {
        let mut incoming = match accepted {
            Accepted::Resumed(incoming) => incoming,
            Accepted::New(path, offer) => {
                let mut part = self.directory.part(&path, &offer)?;
                part.rewind()?;
                Box::new(Incoming { path, offer, part })
            }
        };
        if offset != incoming.part.received() {
            if offset != 0 {
                return Err(FileFailure::Fail(Error::Protocol(
                    "it starts where nothing was accepted".into(),
                )));
            }
            incoming.part.rewind()?;
        }
        Ok(incoming)
    }

    fn handle_data(&mut self, data: &[u8], watch: &mut dyn Observer) -> Result<(), Error> {
        let (number, incoming) = match &mut self.current {
            Some(Current::Receiving(number, incoming)) => (*number, incoming),
            Some(Current::Refused(_)) => return Ok(()),
            None => return Err(super::unexpected_frame(&Frame::Data(Vec::new()))),
        };
        let more = data.len() as u64;
        match incoming.offer.content {
            Content::File { size, .. } if more > size - incoming.part.received() => {
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
                watch.handle_progress(more);
                Ok(())
            }
            Err(FileFailure::Fail(error)) => Err(error),
            Err(FileFailure::Refuse(refusal)) => {
                let path = incoming.path.clone();
                self.current = Some(Current::Refused(number));
                self.refuse(number, &path, refusal, watch);
                Ok(())
            }
        }
    }

    fn handle_end(&mut self, hash: Hash, watch: &mut dyn Observer) -> Result<(), Error> {
        let (number, incoming) = match self.current.take() {
            Some(Current::Receiving(number, incoming)) => (number, incoming),
            Some(Current::Refused(_)) => return Ok(()),
            None => return Err(super::unexpected_frame(&Frame::End { hash })),
        };
        let Incoming { path, offer, mut part } = *incoming;
        let (here, found) = (part.received(), part.hash());
        let whole = match offer.content {
            Content::File { size, hash: offered } => here == size && found == offered && found == hash,
            Content::Stream | Content::Directory => found == hash,
        };
        if whole {
            self.account.credit(here);
            self.batch.push(Entry { number, path, content: Complete::File { part, offer, hash } });
        } else {
            part.discard();
            let text = format!("{path}: what arrived does not match its checksum; it was thrown away");
            self.refuse(number, &path, Refusal::new(Reason::Checksum, text), watch);
        }
        Ok(())
    }

    fn handle_abandon(&mut self, number: Number, why: String, watch: &mut dyn Observer) -> Result<(), Error> {
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
            _ => return Err(super::unexpected_frame(&Frame::Abandon { number, why })),
        };
        if let Some(mut part) = part {
            part.discard();
        }
        self.summary.refused += 1;
        watch.ended(&path, &Outcome::Refused(Refusal::new(Reason::Checksum, why)));
        self.answer_offers(watch)
    }

    fn refuse(&mut self, number: Number, path: &RelativePath, refusal: Refusal, watch: &mut dyn Observer) {
        self.summary.refused += 1;
        watch.ended(path, &Outcome::Refused(refusal.clone()));
        self.replies.push_back(Frame::Refuse(number, refusal));
    }
}
