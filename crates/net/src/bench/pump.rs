//! The data streams of one side: a thread each, which does nothing but write or read.

use super::control::Bell;
use super::now;
use super::stream::{Stream, is_timeout};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long a write or read may take before it looks whether it is over.
pub(super) const CALL: Duration = Duration::from_millis(100);

/// What one stream has moved.
#[derive(Debug, Default)]
pub(super) struct Meter {
    bytes: AtomicU64,
    end: OnceLock<End>,
}

/// How a stream ended by itself.
#[derive(Debug)]
pub(super) enum End {
    /// All was written, or the peer wrote no more.
    Done(Instant),
    Broken(io::Error),
}

impl Meter {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    pub(super) fn end(&self) -> Option<&End> {
        self.end.get()
    }
}

/// What the streams of a test have in common.
#[derive(Debug)]
pub(super) struct Pump<'a> {
    /// Bytes handed over at once.
    pub(super) length: usize,
    /// Rings when a stream ends by itself.
    pub(super) bell: &'a Bell,
    /// Bytes that nobody has begun to send; `None`: no end of them.
    budget: Option<AtomicU64>,
    over: AtomicBool,
}

impl<'a> Pump<'a> {
    pub(super) fn new(length: usize, bell: &'a Bell, budget: Option<u64>) -> Self {
        Self { length, bell, budget: budget.map(AtomicU64::new), over: AtomicBool::new(false) }
    }

    /// Lets the threads end.
    pub(super) fn stop(&self) {
        self.over.store(true, Relaxed);
    }

    fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    /// Writes until it is over or the budget is spent.
    pub(super) fn send(&self, stream: &Stream, data: &[u8], meter: &Meter) {
        self.ended(meter, self.write_all(stream, data, meter));
    }

    /// Reads until it is over or the peer ends.
    pub(super) fn receive(&self, stream: &Stream, buffer: &mut [u8], meter: &Meter) {
        self.ended(meter, self.read_all(stream, buffer, meter));
    }

    fn write_all(&self, mut stream: &Stream, data: &[u8], meter: &Meter) -> io::Result<Ended> {
        loop {
            let mut rest = &data[..self.turn()];
            if rest.is_empty() {
                stream.end_writing()?;
                return Ok(Ended::Itself);
            }
            while !rest.is_empty() {
                if self.is_over() {
                    return Ok(Ended::Told);
                }
                match stream.write(rest) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Ok(n) => {
                        meter.bytes.fetch_add(n as u64, Relaxed);
                        rest = &rest[n..];
                    }
                    Err(e) if is_timeout(&e) => {}
                    Err(e) => return Err(e),
                }
            }
        }
    }

    fn read_all(&self, mut stream: &Stream, buffer: &mut [u8], meter: &Meter) -> io::Result<Ended> {
        while !self.is_over() {
            match stream.read(buffer) {
                Ok(0) => return Ok(Ended::Itself),
                Ok(n) => _ = meter.bytes.fetch_add(n as u64, Relaxed),
                Err(e) if is_timeout(&e) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Ended::Told)
    }

    /// Bytes that a stream may write next.
    fn turn(&self) -> usize {
        let Some(budget) = &self.budget else { return self.length };
        let most = self.length as u64;
        let before = budget.fetch_update(Relaxed, Relaxed, |left| Some(left - left.min(most)));
        before.unwrap_or_else(|left| left).min(most) as usize
    }

    fn ended(&self, meter: &Meter, how: io::Result<Ended>) {
        let end = match how {
            Ok(Ended::Told) => return,
            Ok(Ended::Itself) => End::Done(now()),
            Err(error) => End::Broken(error),
        };
        meter.end.set(end).expect("a stream ends once");
        self.bell.ring();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Itself,
    Told,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_handed_out_to_the_last_byte_and_no_further() {
        let bell = Bell::new().unwrap();
        let pump = Pump::new(1000, &bell, Some(2500));
        assert_eq!([pump.turn(), pump.turn(), pump.turn(), pump.turn()], [1000, 1000, 500, 0]);
        let endless = Pump::new(1000, &bell, None);
        assert_eq!([endless.turn(), endless.turn()], [1000, 1000]);
    }
}
