//! Writer of a receiver's frames, including keep-alive frames while it is busy.

use super::conversations::Seat;
use super::error::Error;
use super::frame::Frame;
use super::frames::{GoOn, is_passing};
use super::path::RelativePath;
use super::reason::Refusal;
use super::stream::{flush, may_go_on, write_bytes};
use super::{Outcome, Watch, silence};
use std::cell::RefCell;
use std::io::Write;
use std::time::{Duration, Instant};

/// Interval of `Working` frames: below the minimum timeout of a sender, which is one second.
const INTERVAL: Duration = Duration::from_millis(400);

/// Writer of frames. One of them may be partially written.
#[derive(Debug)]
pub(super) struct Outlet<W> {
    writer: W,
    /// Unwritten rest of a frame.
    unsent: Vec<u8>,
    /// Time of the last write.
    spoke: Instant,
}

impl<W: Write> Outlet<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer, unsent: Vec::new(), spoke: silence::now() }
    }

    /// Returns the writer, between frames.
    pub(super) fn write(&mut self, frame: &Frame, go_on: GoOn<'_>) -> Result<(), Error> {
        write_bytes(&mut self.writer, &self.unsent, go_on)?;
        self.unsent.clear();
        self.spoke = silence::now();
        write_bytes(&mut self.writer, &frame.encode(), go_on)
    }

    pub(super) fn flush(&mut self) -> Result<(), Error> {
        flush(&mut self.writer)
    }

    pub(super) const fn writer(&mut self) -> Option<&mut W> {
        // No frame may follow a partial one.
        if self.unsent.is_empty() { Some(&mut self.writer) } else { None }
    }

    /// Sends `Working` if nothing was sent for a while and the peer accepts data.
    fn say_working(&mut self, now: Instant) -> Result<(), Error> {
        if now.saturating_duration_since(self.spoke) < INTERVAL {
            return Ok(());
        }
        self.spoke = now;
        if self.unsent.is_empty() {
            self.unsent = Frame::Working.encode();
        }
        match self.writer.write(&self.unsent) {
            Ok(written) => {
                self.unsent.drain(..written);
                self.flush()
            }
            Err(e) if is_passing(&e) => Ok(()),
            Err(e) => Err(Error::Connection(e)),
        }
    }
}

/// Observer that also sends `Working` to the sender, and checks whether to continue.
pub(super) struct Tended<'t, W> {
    pub(super) watch: &'t mut dyn Watch,
    pub(super) outlet: &'t RefCell<Outlet<W>>,
    pub(super) seat: &'t Seat,
}

impl<W: Write> Watch for Tended<'_, W> {
    fn begun(&mut self, path: &RelativePath, size: Option<u64>, offset: u64) {
        self.watch.begun(path, size, offset);
    }

    fn advanced(&mut self, bytes: u64) {
        self.watch.advanced(bytes);
    }

    fn recognised(&mut self, bytes: u64) {
        self.watch.recognised(bytes);
    }

    fn ended(&mut self, path: &RelativePath, outcome: &Outcome) {
        self.watch.ended(path, outcome);
    }

    fn unnameable(&mut self, refusal: &Refusal) {
        self.watch.unnameable(refusal);
    }

    fn working(&mut self) -> Result<(), Error> {
        self.watch.working()?;
        may_go_on(self.seat, self)?;
        self.outlet.borrow_mut().say_working(silence::now())
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
    struct Narrow {
        room: usize,
        taken: Vec<u8>,
    }

    impl Write for Narrow {
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
    fn a_receiver_says_now_and_then_that_it_works() {
        let mut outlet = Outlet::new(Narrow { room: 1000, ..Narrow::default() });
        let begin = outlet.spoke;
        for tenth in 1..=9 {
            outlet.say_working(begin + tenth * INTERVAL / 3).unwrap();
        }
        assert_eq!(outlet.writer.taken, Frame::Working.encode().repeat(3));
    }

    #[test]
    fn a_frame_that_left_in_part_is_completed_before_another_one() {
        let mut outlet = Outlet::new(Narrow { room: 5, ..Narrow::default() });
        outlet.say_working(outlet.spoke + INTERVAL).unwrap();
        outlet.say_working(outlet.spoke + INTERVAL).unwrap();
        assert_eq!(outlet.writer.taken.len(), 5);
        assert!(outlet.writer().is_none());
        outlet.writer.room = 1000;
        outlet.write(&Frame::Bye, &|| Ok(())).unwrap();
        assert_eq!(outlet.writer.taken, [Frame::Working.encode(), Frame::Bye.encode()].concat());
    }
}
