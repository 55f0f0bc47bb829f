//! Writer of a receiver's frames, including keep-alive frames while it is busy.

use super::conversations::Slot;
use super::error::Error;
use super::frame::Frame;
use super::frames::{ShouldContinue, is_transient};
use super::path::RelativePath;
use super::reason::Refusal;
use super::stream::{check_may_continue, flush, write_bytes};
use super::{Observer, Outcome, silence};
use std::cell::RefCell;
use std::io::Write;
use std::time::{Duration, Instant};

/// Interval of `Working` frames: below the minimum timeout of a sender, which is one second.
const WORKING_INTERVAL: Duration = Duration::from_millis(400);

/// Writer of frames. One of them may be partially written.
#[derive(Debug)]
pub(super) struct FrameWriter<W> {
    writer: W,
    /// Unwritten rest of a frame.
    unwritten: Vec<u8>,
    /// Time of the last write.
    last_write: Instant,
}

impl<W: Write> FrameWriter<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer, unwritten: Vec::new(), last_write: silence::now() }
    }

    /// Returns the writer, between frames.
    pub(super) fn write(&mut self, frame: &Frame, go_on: ShouldContinue<'_>) -> Result<(), Error> {
        write_bytes(&mut self.writer, &self.unwritten, go_on)?;
        self.unwritten.clear();
        self.last_write = silence::now();
        write_bytes(&mut self.writer, &frame.encode(), go_on)
    }

    pub(super) fn flush(&mut self) -> Result<(), Error> {
        flush(&mut self.writer)
    }

    pub(super) const fn writer(&mut self) -> Option<&mut W> {
        // No frame may follow a partial one.
        if self.unwritten.is_empty() { Some(&mut self.writer) } else { None }
    }

    /// Sends `Working` if nothing was sent for a while and the peer accepts data.
    fn send_working(&mut self, now: Instant) -> Result<(), Error> {
        if now.saturating_duration_since(self.last_write) < WORKING_INTERVAL {
            return Ok(());
        }
        self.last_write = now;
        if self.unwritten.is_empty() {
            self.unwritten = Frame::Working.encode();
        }
        match self.writer.write(&self.unwritten) {
            Ok(written) => {
                self.unwritten.drain(..written);
                self.flush()
            }
            Err(e) if is_transient(&e) => Ok(()),
            Err(e) => Err(Error::Connection(e)),
        }
    }
}

/// Observer that also sends `Working` to the sender, and checks whether to continue.
pub(super) struct KeepAliveObserver<'t, W> {
    pub(super) watch: &'t mut dyn Observer,
    pub(super) outlet: &'t RefCell<FrameWriter<W>>,
    pub(super) seat: &'t Slot,
}

impl<W: Write> Observer for KeepAliveObserver<'_, W> {
    fn file_started(&mut self, path: &RelativePath, size: Option<u64>, offset: u64) {
        self.watch.file_started(path, size, offset);
    }

    fn handle_progress(&mut self, bytes: u64) {
        self.watch.handle_progress(bytes);
    }

    fn already_present(&mut self, bytes: u64) {
        self.watch.already_present(bytes);
    }

    fn ended(&mut self, path: &RelativePath, outcome: &Outcome) {
        self.watch.ended(path, outcome);
    }

    fn path_rejected(&mut self, refusal: &Refusal) {
        self.watch.path_rejected(refusal);
    }

    fn working(&mut self) -> Result<(), Error> {
        self.watch.working()?;
        check_may_continue(self.seat, self)?;
        self.outlet.borrow_mut().send_working(silence::now())
    }

    fn interrupted(&self) -> bool {
        self.watch.interrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Writer that accepts a limited number of further bytes.
    #[derive(Debug, Default)]
    struct LimitedWriter {
        room: usize,
        taken: Vec<u8>,
    }

    impl Write for LimitedWriter {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            let len = data.len().min(self.room);
            self.room -= len;
            self.taken.extend(&data[..len]);
            if len == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(len) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_busy_receiver_sends_working_frames() {
        let mut outlet = FrameWriter::new(LimitedWriter { room: 1000, ..LimitedWriter::default() });
        let begin = outlet.last_write;
        for tenth in 1..=9 {
            outlet.send_working(begin + tenth * WORKING_INTERVAL / 3).unwrap();
        }
        assert_eq!(outlet.writer.taken, Frame::Working.encode().repeat(3));
    }

    #[test]
    fn a_partially_written_frame_is_completed_before_the_next() {
        let mut outlet = FrameWriter::new(LimitedWriter { room: 5, ..LimitedWriter::default() });
        outlet.send_working(outlet.last_write + WORKING_INTERVAL).unwrap();
        outlet.send_working(outlet.last_write + WORKING_INTERVAL).unwrap();
        assert_eq!(outlet.writer.taken.len(), 5);
        assert!(outlet.writer().is_none());
        outlet.writer.room = 1000;
        outlet.write(&Frame::Bye, &|| Ok(())).unwrap();
        assert_eq!(outlet.writer.taken, [Frame::Working.encode(), Frame::Bye.encode()].concat());
    }
}
