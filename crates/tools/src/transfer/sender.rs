//! Sender of a file transfer, as a sans-I/O machine over frames.

use super::error::Error;
use super::frame::{Content, Frame, Modified, Number, Offer, VERSION, WINDOW};
use super::identity::SenderId;
use super::outgoing::{Outgoing, Piece};
use super::path::RelativePath;
use super::reason::{Reason, Refusal};
use super::source::{Item, ItemContent, Source};
use super::{Observer, Outcome, Summary};
use crate::printable::printable_path;
use blake3::Hash;
use std::collections::{BTreeMap, VecDeque};

/// Mode of a stream's file, which has none of its own.
const STREAM_MODE: u16 = 0o644;
/// Bytes left to send below which further files are offered. A file is read for its hash when it is offered; the data of
/// the previous one should not wait for that.
const LOOK_AHEAD: u64 = 4 << 20;

/// Sending side of a conversation: returns frames as permitted, and processes replies.
///
/// Up to [`WINDOW`] offers may be without a final answer. Accepted files are sent one after the other, in the order of
/// their acceptance.
#[derive(Debug)]
pub struct Sender {
    identity: Option<SenderId>,
    items: VecDeque<Item>,
    state: State,
    /// Number of the next offer.
    next: Number,
    /// Offers without a final answer.
    offered: BTreeMap<Number, Offered>,
    /// Accepted offers that have not started.
    ready: VecDeque<Number>,
    /// File that is being sent.
    sending: Option<Number>,
    summary: Summary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hello,
    AwaitHello,
    Open,
    AwaitBye,
    Finished,
    /// It ended with an error.
    Broken,
}

#[derive(Debug)]
struct Offered {
    path: RelativePath,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    AwaitVerdict(Outgoing),
    /// A directory, which has no data.
    AwaitDirectory,
    /// Accepted. The receiver has the beginning of the file up to this offset.
    Ready(Outgoing, u64),
    Sending(Outgoing),
    /// Accepted, but cannot be completed, for this reason.
    Abandon(String),
    /// Rejected in the middle of its data; the receiver has yet to be told their end.
    Refused,
    AwaitStored,
}

impl Sender {
    /// Creates a sender that has not said hello yet.
    #[must_use]
    pub fn new(source: Source) -> Self {
        Self {
            identity: source.identity,
            items: source.items.into(),
            state: State::Hello,
            next: 0,
            offered: BTreeMap::new(),
            ready: VecDeque::new(),
            sending: None,
            summary: Summary::default(),
        }
    }

    /// Returns whether everything was offered and the receiver has confirmed the end.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Finished)
    }

    /// Returns whether the receiver owes an answer, even if nothing more is sent.
    #[must_use]
    pub fn awaits_reply(&self) -> bool {
        match self.state {
            State::AwaitHello | State::AwaitBye => true,
            State::Open => self.offered.values().any(|offered| {
                matches!(offered.stage, Stage::AwaitVerdict(_) | Stage::AwaitDirectory | Stage::AwaitStored)
            }),
            State::Hello | State::Finished | State::Broken => false,
        }
    }

    /// Returns the statistics so far.
    #[must_use]
    pub const fn summary(&self) -> Summary {
        self.summary
    }

    /// Returns the next frame to send. `None` if a reply is due first, a stream has no data at present (`WouldBlock`), or
    /// the conversation has ended.
    ///
    /// # Errors
    ///
    /// If a stream cannot be read. An unreadable file is skipped, and counted as rejected.
    pub fn poll_frame(&mut self, watch: &mut dyn Observer) -> Result<Option<Frame>, Error> {
        match self.state {
            State::Hello => {
                self.state = State::AwaitHello;
                Ok(Some(Frame::Hello { version: VERSION, sender: self.identity }))
            }
            State::Open => self.poll_open(watch).inspect_err(|_| self.state = State::Broken),
            State::AwaitHello | State::AwaitBye | State::Finished | State::Broken => Ok(None),
        }
    }

    /// Processes a reply.
    ///
    /// # Errors
    ///
    /// The conversation has failed; every further frame fails too.
    pub fn handle_frame(&mut self, frame: Frame, watch: &mut dyn Observer) -> Result<(), Error> {
        let handled = match (self.state, frame) {
            (_, Frame::Fail(refusal)) => Err(Error::Peer(refusal)),
            (_, Frame::Working) => Ok(()),
            (State::AwaitHello, Frame::Hello { version, .. }) => {
                super::check_version(version).map(|()| self.state = State::Open)
            }
            (State::Open, frame) => self.handle_answer(frame, watch),
            (State::AwaitBye, Frame::Bye) => {
                self.state = State::Finished;
                Ok(())
            }
            (_, frame) => Err(super::unexpected_frame(&frame)),
        };
        handled.inspect_err(|_| self.state = State::Broken)
    }

    fn poll_open(&mut self, watch: &mut dyn Observer) -> Result<Option<Frame>, Error> {
        if self.may_offer()
            && let Some(offer) = self.offer(watch)
        {
            return Ok(Some(offer));
        }
        if let Some(number) = self.sending {
            return self.next_data(number, watch);
        }
        if let Some(number) = self.ready.pop_front() {
            return Ok(Some(self.start(number, watch)));
        }
        if self.items.is_empty() && self.offered.is_empty() {
            self.state = State::AwaitBye;
            return Ok(Some(Frame::Bye));
        }
        Ok(None)
    }

    fn may_offer(&self) -> bool {
        let left = self.offered.values().map(|offered| match &offered.stage {
            Stage::AwaitVerdict(outgoing) | Stage::Ready(outgoing, _) | Stage::Sending(outgoing) => {
                outgoing.remaining()
            }
            Stage::AwaitDirectory | Stage::Abandon(_) | Stage::Refused | Stage::AwaitStored => 0,
        });
        self.offered.len() < WINDOW && left.fold(0, u64::saturating_add) < LOOK_AHEAD
    }

    /// Offers the next item that can be opened.
    fn offer(&mut self, watch: &mut dyn Observer) -> Option<Frame> {
        while let Some(Item { path, content: what }) = self.items.pop_front() {
            let none = Modified::default();
            let (content, stage, mode, modified) = match what {
                ItemContent::Directory => (Content::Directory, Stage::AwaitDirectory, 0, none),
                ItemContent::Stream(reader) => {
                    let stage = Stage::AwaitVerdict(Outgoing::stream(reader));
                    (Content::Stream, stage, STREAM_MODE, none)
                }
                ItemContent::File(place, _) => match Outgoing::open(&place) {
                    Ok((outgoing, content, mode, modified)) => {
                        (content, Stage::AwaitVerdict(outgoing), mode, modified)
                    }
                    Err(e) => {
                        let text = format!("{}: cannot be read: {e}", printable_path(&place));
                        let reason = super::error::reason_of(&e);
                        self.skip(&path, Refusal::new(reason, text), watch);
                        continue;
                    }
                },
            };
            let offer = Offer { path: path.as_bytes().to_vec(), content, mode, modified };
            let number = self.next;
            self.next = self.next.wrapping_add(1);
            self.offered.insert(number, Offered { path, stage });
            return Some(Frame::Offer(number, offer));
        }
        None
    }

    /// Starts the data of an accepted file.
    fn start(&mut self, number: Number, watch: &mut dyn Observer) -> Frame {
        let Offered { path, stage } = self.offered.remove(&number).expect("what is ready was offered");
        match stage {
            Stage::Ready(outgoing, offset) => {
                watch.file_started(&path, outgoing.size(), offset);
                self.offered.insert(number, Offered { path, stage: Stage::Sending(outgoing) });
                self.sending = Some(number);
                Frame::Start { number, offset }
            }
            Stage::Abandon(why) => self.abandon(number, &path, why, watch),
            stage => unreachable!("{path} is ready and {stage:?}"),
        }
    }

    /// Returns the next data of the current file, or their end.
    fn next_data(&mut self, number: Number, watch: &mut dyn Observer) -> Result<Option<Frame>, Error> {
        let offered = self.offered.get_mut(&number).expect("what is being sent was offered");
        let Stage::Sending(outgoing) = &mut offered.stage else {
            // The rejection has already been reported.
            self.offered.remove(&number);
            self.sending = None;
            return Ok(Some(Frame::Abandon { number, why: "it was refused".into() }));
        };
        let path = &offered.path;
        let piece = outgoing.next().map_err(|e| Error::files(format!("reading what becomes {path}"), e))?;
        Ok(match piece {
            Piece::Data(data) => {
                self.summary.bytes += data.len() as u64;
                watch.handle_progress(data.len() as u64);
                Some(Frame::Data(data))
            }
            Piece::Pending => None,
            Piece::End(hash) => {
                offered.stage = Stage::AwaitStored;
                self.sending = None;
                Some(Frame::End { hash })
            }
            Piece::Broken(why) => {
                let path = self.offered.remove(&number).expect("it was there").path;
                self.sending = None;
                Some(self.abandon(number, &path, why, watch))
            }
        })
    }

    /// Processes the answer to an offer.
    fn handle_answer(&mut self, frame: Frame, watch: &mut dyn Observer) -> Result<(), Error> {
        let number = match &frame {
            Frame::Accept { number, .. }
            | Frame::Have(number)
            | Frame::Refuse(number, _)
            | Frame::Done(number) => *number,
            other => return Err(super::unexpected_frame(other)),
        };
        let Some(Offered { path, stage }) = self.offered.remove(&number) else {
            return Err(super::unexpected_frame(&frame));
        };
        match (stage, frame) {
            (Stage::AwaitVerdict(outgoing), Frame::Accept { offset, prefix, .. }) => {
                let stage = accepted(outgoing, offset, prefix)?;
                self.offered.insert(number, Offered { path, stage });
                self.ready.push_back(number);
            }
            (Stage::AwaitVerdict(outgoing), Frame::Have(_)) if outgoing.is_file() => {
                self.summary.present += 1;
                watch.already_present(outgoing.size().unwrap_or(0));
                watch.ended(&path, &Outcome::Present);
            }
            (Stage::AwaitDirectory, Frame::Done(_)) => watch.ended(&path, &Outcome::Made),
            (Stage::AwaitStored, Frame::Done(_)) => {
                self.summary.stored += 1;
                watch.ended(&path, &Outcome::Stored);
            }
            (Stage::Refused, frame) => return Err(super::unexpected_frame(&frame)),
            (stage, Frame::Refuse(_, refusal)) => {
                self.skip(&path, refusal, watch);
                match stage {
                    Stage::Sending(_) => {
                        self.offered.insert(number, Offered { path, stage: Stage::Refused });
                    }
                    Stage::Ready(..) | Stage::Abandon(_) => self.ready.retain(|ready| *ready != number),
                    Stage::AwaitVerdict(_) | Stage::AwaitDirectory | Stage::AwaitStored | Stage::Refused => {}
                }
            }
            (_, frame) => return Err(super::unexpected_frame(&frame)),
        }
        Ok(())
    }

    fn abandon(
        &mut self,
        number: Number,
        path: &RelativePath,
        why: String,
        watch: &mut dyn Observer,
    ) -> Frame {
        self.skip(path, Refusal::new(Reason::Checksum, format!("{path}: {why}")), watch);
        Frame::Abandon { number, why }
    }

    fn skip(&mut self, path: &RelativePath, refusal: Refusal, watch: &mut dyn Observer) {
        self.summary.refused += 1;
        watch.ended(path, &Outcome::Refused(refusal));
    }
}

/// Handles the acceptance of a file of which the receiver already has `offset` bytes.
fn accepted(mut outgoing: Outgoing, offset: u64, prefix: Hash) -> Result<Stage, Error> {
    Ok(match outgoing.resume_from(offset, prefix)? {
        Ok(at) => Stage::Ready(outgoing, at),
        Err(e) => Stage::Abandon(format!("it cannot be read: {e}")),
    })
}
