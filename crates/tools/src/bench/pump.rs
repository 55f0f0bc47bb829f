//! Data streams of one side. Each has a thread that only writes or reads.

use super::control::Notifier;
use super::datagram::{CounterWidth, DatagramCounter, DatagramHeader, DatagramStats};
use super::now;
use super::plan::{MIN_DATAGRAM, Rate};
use super::report::Role;
use super::stream::{Stream, is_timeout};
use socket2::SockRef;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Timeout of one write or read, after which the thread checks for the end of the test.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_millis(100);
/// Maximum bytes of one read. With the maximum number of streams, all buffers of a direction take 16 MiB.
const READ_LEN: usize = 128 << 10;
/// Interval between checks whether the peer has acknowledged everything.
const ACK_CHECK: Duration = Duration::from_millis(2);

/// Counters of one stream.
#[derive(Debug)]
pub(super) struct Meter {
    pub(super) role: Role,
    bytes: AtomicU64,
    /// Datagrams sent.
    datagrams_sent: AtomicU64,
    received: Mutex<DatagramCounter>,
    stream_end: OnceLock<StreamEnd>,
}

/// End of a stream that was not stopped.
#[derive(Debug)]
pub(super) enum StreamEnd {
    /// The peer has acknowledged everything, or has closed its side.
    Done(Instant),
    Broken(io::Error),
}

impl Meter {
    pub(super) fn new(role: Role) -> Self {
        Self {
            role,
            bytes: AtomicU64::new(0),
            datagrams_sent: AtomicU64::new(0),
            received: Mutex::default(),
            stream_end: OnceLock::new(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    pub(super) fn end(&self) -> Option<&StreamEnd> {
        self.stream_end.get()
    }

    pub(super) fn datagrams(&self) -> DatagramStats {
        match self.role {
            Role::Sends => {
                DatagramStats { packets: self.datagrams_sent.load(Relaxed), ..DatagramStats::default() }
            }
            Role::Receives => self.received().stats(),
        }
    }

    fn received(&self) -> MutexGuard<'_, DatagramCounter> {
        self.received.lock().expect("nobody panics while holding it")
    }
}

/// State shared by the streams of a test.
#[derive(Debug)]
pub(super) struct Pump<'a> {
    /// Bytes of one write.
    pub(super) length: usize,
    /// Data of one write.
    pub(super) data: &'a [u8],
    /// A file with `data`, if TCP sends the pages of a file.
    pub(super) file: Option<File>,
    pub(super) counters: CounterWidth,
    pub(super) rate: Rate,
    /// Rings when a stream ends by itself.
    pub(super) notifier: &'a Notifier,
    /// `false` during the omission, when neither `budget` nor `goal` counts.
    pub(super) counting: AtomicBool,
    /// Bytes left to send. `None`: unlimited.
    pub(super) budget: Option<AtomicU64>,
    /// Bytes that have to arrive. `reached` is the time at which they had.
    pub(super) goal: Option<u64>,
    pub(super) arrived: AtomicU64,
    pub(super) reached: OnceLock<Instant>,
    /// `true` once the receiver has everything it needs, so that the senders stop.
    pub(super) sending_done: AtomicBool,
    pub(super) stopped: AtomicBool,
}

impl Pump<'_> {
    /// Makes the threads end.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// Makes the sending threads end.
    pub(super) fn stop_sending(&self) {
        self.sending_done.store(true, Relaxed);
    }

    /// Ends the omission.
    pub(super) fn end_omission(&self) {
        self.counting.store(true, Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    fn is_sending_done(&self) -> bool {
        self.is_stopped() || self.sending_done.load(Relaxed)
    }

    /// Moves data until the test is over or the stream ends.
    pub(super) fn run_stream(&self, stream: &Stream, meter: &Meter) {
        let done = match meter.role {
            Role::Sends => self.send(stream, meter),
            Role::Receives => self.receive(stream, meter),
        };
        self.record_end(meter, done);
    }

    fn send(&self, stream: &Stream, meter: &Meter) -> io::Result<LoopEnd> {
        let mut pace = Pacer { rate: self.rate, began: now(), blocks: 0 };
        loop {
            self.sleep_until(pace.next_departure(self.length));
            if self.is_sending_done() {
                return Ok(LoopEnd::Stopped);
            }
            let len = self.next_write_len();
            if len == 0 {
                return self.await_acknowledgment(stream);
            }
            match (stream, &self.file) {
                (Stream::Udp(socket), _) => self.send_datagram(socket, meter)?,
                (Stream::Tcp(_), Some(file)) => self.send_file(stream, file, len, meter)?,
                _ => self.write(stream, &self.data[..len], meter)?,
            }
        }
    }

    fn write(&self, mut stream: &Stream, mut rest: &[u8], meter: &Meter) -> io::Result<()> {
        while !rest.is_empty() && !self.is_sending_done() {
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
        // With a rate, each burst leaves at once.
        if self.rate.bps > 0 { stream.flush() } else { Ok(()) }
    }

    fn send_file(&self, stream: &Stream, file: &File, len: usize, meter: &Meter) -> io::Result<()> {
        let mut at = 0;
        while at < len as u64 && !self.is_sending_done() {
            let rest = len - at as usize;
            match rustix::fs::sendfile(stream, file, Some(&mut at), rest) {
                Ok(n) => _ = meter.bytes.fetch_add(n as u64, Relaxed),
                Err(e) if is_timeout(&e.into()) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    fn send_datagram(&self, socket: &UdpSocket, meter: &Meter) -> io::Result<()> {
        let number = meter.datagrams_sent.load(Relaxed) + 1;
        let mut header = [0; MIN_DATAGRAM as usize];
        let len = DatagramHeader { number, departure: since_1970() }.write(self.counters, &mut header);
        let parts = [IoSlice::new(&header[..len]), IoSlice::new(&self.data[len..])];
        match SockRef::from(socket).send_vectored(&parts) {
            Ok(n) => {
                meter.datagrams_sent.store(number, Relaxed);
                meter.bytes.fetch_add(n as u64, Relaxed);
            }
            Err(e) if is_timeout(&e) => {}
            // The send queue is full, or the peer has closed its socket before the end of the test.
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENOBUFS | libc::ECONNREFUSED)) => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// Waits until the peer has acknowledged everything.
    fn await_acknowledgment(&self, mut stream: &Stream) -> io::Result<LoopEnd> {
        stream.flush()?;
        while stream.unacknowledged()? > 0 {
            if self.is_stopped() {
                return Ok(LoopEnd::Stopped);
            }
            thread::sleep(ACK_CHECK);
        }
        Ok(LoopEnd::StreamEnded)
    }

    fn receive(&self, mut stream: &Stream, meter: &Meter) -> io::Result<LoopEnd> {
        let udp = matches!(stream, Stream::Udp(_));
        let mut buffer = vec![0; self.length.min(READ_LEN)];
        while !self.is_stopped() {
            match stream.read(&mut buffer) {
                Ok(0) if !udp => return Ok(LoopEnd::StreamEnded),
                Ok(n) => {
                    if udp {
                        // A datagram that is too short for the header does not belong to the test.
                        let Some(stamp) = DatagramHeader::read(self.counters, &buffer[..n]) else { continue };
                        meter.received().record(stamp, since_1970());
                    }
                    meter.bytes.fetch_add(n as u64, Relaxed);
                    self.count(n as u64);
                }
                Err(e) if is_timeout(&e) || (udp && e.kind() == ErrorKind::ConnectionRefused) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(LoopEnd::Stopped)
    }

    fn count(&self, bytes: u64) {
        let Some(goal) = self.goal.filter(|_| self.counting.load(Relaxed)) else { return };
        if self.arrived.fetch_add(bytes, Relaxed) + bytes >= goal && self.reached.set(now()).is_ok() {
            self.notifier.notify();
        }
    }

    /// Returns the bytes that a stream may write next.
    fn next_write_len(&self) -> usize {
        let Some(budget) = self.budget.as_ref().filter(|_| self.counting.load(Relaxed)) else {
            return self.length;
        };
        let most = self.length as u64;
        let before = budget.fetch_update(Relaxed, Relaxed, |left| Some(left - left.min(most)));
        before.unwrap_or_else(|left| left).min(most) as usize
    }

    fn sleep_until(&self, due: Option<Instant>) {
        let Some(due) = due else { return };
        while !self.is_sending_done() {
            match due.checked_duration_since(now()).filter(|rest| !rest.is_zero()) {
                Some(rest) => thread::sleep(rest.min(CALL_TIMEOUT)),
                None => return,
            }
        }
    }

    fn record_end(&self, meter: &Meter, how: io::Result<LoopEnd>) {
        let end = match how {
            Ok(LoopEnd::Stopped) => return,
            Ok(LoopEnd::StreamEnded) => StreamEnd::Done(now()),
            Err(error) => StreamEnd::Broken(error),
        };
        meter.stream_end.set(end).expect("a stream ends once");
        self.notifier.notify();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoopEnd {
    StreamEnded,
    Stopped,
}

/// Pacing of the blocks of a stream.
#[derive(Debug)]
struct Pacer {
    rate: Rate,
    began: Instant,
    blocks: u64,
}

impl Pacer {
    /// Returns the time at which the next block may leave. `None`: at once.
    fn next_departure(&mut self, length: usize) -> Option<Instant> {
        let burst = u64::from(self.rate.burst.max(1));
        let before = self.blocks / burst * burst;
        self.blocks += 1;
        let nanos =
            (u128::from(before) * length as u128 * 8_000_000_000).checked_div(self.rate.bps.into())?;
        self.began.checked_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }
}

/// Creates a file in memory with `data`.
pub(super) fn memory_file(data: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("bench", rustix::fs::MemfdFlags::CLOEXEC)?);
    file.write_all(data)?;
    Ok(file)
}

#[expect(clippy::disallowed_methods, reason = "datagrams bear the time of day")]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pump(bell: &Notifier, budget: Option<u64>) -> Pump<'_> {
        Pump {
            length: 1000,
            data: &[0; 1000],
            file: None,
            counters: CounterWidth::Bits64,
            rate: Rate::default(),
            notifier: bell,
            counting: AtomicBool::new(true),
            budget: budget.map(AtomicU64::new),
            goal: None,
            arrived: AtomicU64::new(0),
            reached: OnceLock::new(),
            sending_done: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        }
    }

    #[test]
    fn a_budget_is_used_to_the_last_byte_and_not_exceeded() {
        let bell = Notifier::new().unwrap();
        let limited = pump(&bell, Some(2500));
        assert_eq!(
            [
                limited.next_write_len(),
                limited.next_write_len(),
                limited.next_write_len(),
                limited.next_write_len()
            ],
            [1000, 1000, 500, 0]
        );
        let omitting = pump(&bell, Some(1000));
        omitting.counting.store(false, Relaxed);
        assert_eq!(
            [omitting.next_write_len(), omitting.next_write_len()],
            [1000, 1000],
            "what is omitted uses none of it"
        );
        omitting.end_omission();
        assert_eq!([omitting.next_write_len(), omitting.next_write_len()], [1000, 0]);
        let endless = pump(&bell, None);
        assert_eq!([endless.next_write_len(), endless.next_write_len()], [1000, 1000]);
    }

    #[test]
    fn blocks_are_due_at_the_rate_and_bursts_together() {
        let began = now();
        let due = |bps, burst| {
            let mut pace = Pacer { rate: Rate { bps, burst }, began, blocks: 0 };
            [0; 5].map(|_| pace.next_departure(1000).map(|at| (at - began).as_millis()))
        };
        assert_eq!(due(8_000_000, 0), [0, 1, 2, 3, 4].map(Some));
        assert_eq!(due(8_000_000, 2), [0, 0, 2, 2, 4].map(Some));
        assert_eq!(due(0, 2), [None; 5]);
    }
}
