//! Sender and receiver over byte streams.

use super::Observer;
use super::Summary;
use super::conversations::Slot;
use super::error::Error;
use super::frame::{Frame, WINDOW};
use super::frame_writer::{FrameWriter, KeepAliveObserver};
use super::frames::{Frames, PendingPeer, ShouldContinue, is_transient};
use super::permissions::Permissions;
use super::reason::{Reason, Refusal};
use super::receiver::Receiver;
use super::sender::Sender;
use super::silence::{ResponseTimer, now};
use super::source::Source;
use super::store::Directory;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Interval between checks for an interruption while there is nothing to do.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Sends `source`, and returns when the receiver has answered for all of it.
///
/// Replies are read on a thread of their own, so that a receiver's refusal is noticed at once. The thread ends with the
/// conversation or with `reader`; after an error it may outlive this call until the stream is closed. The caller closes
/// the stream.
///
/// A receiver that owes an answer, and neither answers nor takes data for `silence`, is given up. A receiver that hashes
/// a file or waits for its disk reports so. A writer with a timeout lets the check take place while it takes no data.
///
/// # Errors
///
/// The reason for an early end. If [`Error::is_retryable`], another call with a new source over a new connection
/// resumes the transfer.
pub fn send(
    reader: impl Read + Send + 'static,
    mut writer: impl Write,
    source: Source,
    silence: Option<Duration>,
    watch: &mut dyn Observer,
) -> Result<Summary, Error> {
    let replies = Replies::spawn_reader(reader)?;
    let mut sender = Sender::new(source);
    let silence = Cell::new(ResponseTimer::new(silence, now()));
    let end_silence = || {
        let mut ended = silence.get();
        ended.restart(now());
        silence.set(ended);
    };
    let mut converse = || {
        while !sender.is_over() {
            check_interrupted(watch)?;
            let begin = now();
            let next = sender.poll_frame(watch)?;
            let mut counted = silence.get();
            counted.exclude(begin, now());
            silence.set(counted);
            let mut limit = if next.is_none() { POLL_INTERVAL } else { Duration::ZERO };
            if let Some(frame) = next {
                let go_on = || {
                    check_interrupted(watch)?;
                    replies.check_no_final_reply(&end_silence)?;
                    silence.get().check(now())
                };
                let written = write_with_progress(&mut writer, &frame.encode(), &go_on, &end_silence);
                written.map_err(|error| replies.final_refusal(error))?;
            } else {
                // Data frames are not flushed one by one: transports fill their segments.
                flush(&mut writer)?;
            }
            while !sender.is_over() {
                match replies.next(limit) {
                    Ok(reply) => {
                        end_silence();
                        sender.handle_frame(reply?, watch)?;
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return Err(Error::Closed),
                }
                limit = Duration::ZERO;
            }
            if !sender.awaits_reply() {
                end_silence();
            }
            silence.get().check(now())?;
        }
        Ok::<(), Error>(())
    };
    match converse() {
        Ok(()) => Ok(sender.summary()),
        Err(error) => {
            if let Some(refusal) = error.refusal() {
                // The peer may have closed the connection already.
                let _ = send_final_refusal(&mut writer, refusal);
            }
            Err(error)
        }
    }
}

/// Receives files into `directory` until the sender ends the conversation.
///
/// With a timeout of the reader, [`Observer::interrupted`] is checked while no data arrive. The caller closes the stream.
///
/// # Errors
///
/// The reason for an early end. Received data of a file are kept for the next conversation.
pub fn receive<R: Read>(
    caller: impl Into<PendingPeer<R>>,
    writer: impl Write,
    directory: &Directory,
    permitted: Permissions,
    seat: &Slot,
    watch: &mut dyn Observer,
) -> Result<Summary, Error> {
    let mut receiver = Receiver::new(directory, permitted).with_account(seat.account().clone());
    let mut progress = (0, 0);
    let outlet = RefCell::new(FrameWriter::new(writer));
    let watch = &mut KeepAliveObserver { watch, outlet: &outlet, seat };
    let PendingPeer { mut frames, mut first } = caller.into();
    let mut converse = || {
        while !receiver.is_over() {
            let there = match first.take() {
                Some(frame) => Some(frame),
                None => frames.decode()?,
            };
            let frame = match there {
                Some(frame) => frame,
                // Nothing more is available at once: complete files are written to the disk, and all answers are sent.
                None => {
                    receiver.settle(watch)?;
                    process_frames(&mut receiver, &outlet, &|| check_may_continue(seat, watch))?;
                    frames.next(&|| check_may_continue(seat, watch))?
                }
            };
            if let Frame::Hello { sender: Some(sender), .. } = frame {
                seat.take_over(sender);
            }
            receiver.handle_frame(frame, watch)?;
            record_progress(seat, &mut progress, &receiver);
        }
        process_frames(&mut receiver, &outlet, &|| check_may_continue(seat, watch))
    };
    match converse() {
        Ok(()) => Ok(receiver.summary()),
        Err(error) => {
            // Complete files are stored, even if the sender may not learn of it.
            let _ = receiver.settle(watch);
            if let Some(refusal) = error.refusal()
                && outlet
                    .borrow_mut()
                    .writer()
                    .is_some_and(|writer| send_final_refusal(writer, refusal).is_ok())
            {
                frames.drain(&|| check_may_continue(seat, watch));
            }
            Err(error)
        }
    }
}

/// Rejects a peer for lack of a seat, if that does not block. It may retry.
///
/// # Errors
///
/// Errors of the writer.
pub fn reject(mut writer: impl Write) -> io::Result<()> {
    send_final_refusal(
        &mut writer,
        Refusal::new(Reason::TooMany, "the receiver has too many conversations at once"),
    )
}

/// A stream that is read on one thread and written on another, for streams that are read and written through a reference,
/// as sockets are.
#[derive(Debug)]
pub struct Shared<S>(Arc<S>);

impl<S> Shared<S> {
    /// Shares `stream`; clones refer to the same stream.
    pub fn new(stream: S) -> Self {
        Self(Arc::new(stream))
    }

    /// Returns the stream, if there is no other clone.
    ///
    /// # Errors
    ///
    /// `self`, if there is one.
    pub fn into_inner(self) -> Result<S, Self> {
        Arc::try_unwrap(self.0).map_err(Self)
    }

    /// Returns the stream.
    #[must_use]
    pub fn get(&self) -> &S {
        &self.0
    }
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> Read for Shared<S>
where
    for<'a> &'a S: Read,
{
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(data)
    }
}

impl<S> Write for Shared<S>
where
    for<'a> &'a S: Write,
{
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        (&*self.0).write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.0).flush()
    }
}

/// Replies of the receiver, read on a thread of their own.
struct Replies {
    received: mpsc::Receiver<Result<Frame, Error>>,
    /// Replies received while a write was in progress, not processed yet.
    pending: RefCell<VecDeque<Result<Frame, Error>>>,
}

impl Replies {
    fn spawn_reader(reader: impl Read + Send + 'static) -> Result<Self, Error> {
        // An offer has at most two answers; a peer that sends more has to wait.
        let (give, heard) = mpsc::sync_channel(2 * WINDOW);
        let read = move || {
            let mut frames = Frames::new(reader);
            loop {
                let frame = frames.next(&|| Ok(()));
                let last = !matches!(&frame, Ok(frame) if !matches!(frame, Frame::Fail(_) | Frame::Bye));
                if give.send(frame).is_err() || last {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("replies".into()).spawn(read);
        thread.map_err(|e| Error::files("starting a thread", e))?;
        Ok(Self { received: heard, pending: RefCell::default() })
    }

    /// Returns the next reply, waiting at most `limit`.
    fn next(&self, limit: Duration) -> Result<Result<Frame, Error>, RecvTimeoutError> {
        match self.pending.borrow_mut().pop_front() {
            Some(reply) => Ok(reply),
            None => self.received.recv_timeout(limit),
        }
    }

    /// Checks that no reply ends the conversation. It is called while the writer takes no data: a refusal may be the
    /// cause, and the data may never arrive. Calls `heard` if there was a reply.
    fn check_no_final_reply(&self, heard: &dyn Fn()) -> Result<(), Error> {
        while let Ok(reply) = self.received.try_recv() {
            heard();
            match reply? {
                Frame::Fail(refusal) => return Err(Error::Peer(refusal)),
                reply => self.pending.borrow_mut().push_back(Ok(reply)),
            }
        }
        Ok(())
    }

    /// Returns the refusal that the receiver sent before it closed the connection; otherwise the error of writing.
    fn final_refusal(&self, error: Error) -> Error {
        if !matches!(error, Error::Connection(_)) {
            return error;
        }
        loop {
            match self.next(10 * POLL_INTERVAL) {
                Ok(Ok(Frame::Fail(refusal))) => return Error::Peer(refusal),
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => return error,
            }
        }
    }
}

/// Processes all available replies.
fn process_frames(
    receiver: &mut Receiver<'_>,
    outlet: &RefCell<FrameWriter<impl Write>>,
    go_on: ShouldContinue<'_>,
) -> Result<(), Error> {
    let mut any = false;
    let mut outlet = outlet.borrow_mut();
    while let Some(reply) = receiver.poll_frame() {
        outlet.write(&reply, go_on)?;
        any = true;
    }
    if any { outlet.flush() } else { Ok(()) }
}

/// Writes bytes, and retries whenever the writer would block.
pub(super) fn write_bytes(
    writer: &mut impl Write,
    bytes: &[u8],
    go_on: ShouldContinue<'_>,
) -> Result<(), Error> {
    write_with_progress(writer, bytes, go_on, &|| ())
}

/// Writes bytes, and calls `taken` whenever the writer has accepted some.
fn write_with_progress(
    writer: &mut impl Write,
    bytes: &[u8],
    go_on: ShouldContinue<'_>,
    taken: &dyn Fn(),
) -> Result<(), Error> {
    let mut left = bytes;
    while !left.is_empty() {
        match writer.write(left) {
            Ok(0) => return Err(Error::Connection(ErrorKind::WriteZero.into())),
            Ok(written) => {
                left = &left[written..];
                taken();
            }
            Err(e) if is_transient(&e) => go_on()?,
            Err(e) => return Err(Error::Connection(e)),
        }
    }
    Ok(())
}

pub(super) fn flush(writer: &mut impl Write) -> Result<(), Error> {
    match writer.flush() {
        Err(e) if !is_transient(&e) => Err(Error::Connection(e)),
        _ => Ok(()),
    }
}

/// Sends the reason for the end to the peer, if that does not block.
fn send_final_refusal(writer: &mut impl Write, refusal: Refusal) -> io::Result<()> {
    writer.write_all(&Frame::Fail(refusal).encode()).and_then(|()| writer.flush())
}

fn check_interrupted(watch: &dyn Observer) -> Result<(), Error> {
    if watch.interrupted() { Err(Error::Interrupted) } else { Ok(()) }
}

/// Records progress. Frames are no progress, and neither are refusals, nor recognised files that were offered before: a
/// peer can produce any number of them.
fn record_progress(seat: &Slot, before: &mut (u64, u64), receiver: &Receiver<'_>) {
    let now = (receiver.summary().bytes, receiver.finished());
    seat.advance(now.0 - before.0);
    if now.1 > before.1 {
        seat.record_file();
    }
    *before = now;
}

pub(super) fn check_may_continue(seat: &Slot, watch: &dyn Observer) -> Result<(), Error> {
    match (seat.is_taken_over(), seat.is_evicted()) {
        (true, _) => Err(Error::TakenOver),
        (false, true) => Err(Error::Idle),
        (false, false) => check_interrupted(watch),
    }
}
