//! Path without a kernel: lists of packets.

use super::{Arrived, MiddleboxPath};
use bytes::Bytes;
use hopline_core::Instant;
use hopline_proxy::driver::{Counts, Driver, PumpResult};
use hopline_proxy::snoop::{Config, Snoop, Stats};
use hopline_proxy::{
    Arrival, Connection, InjectResult, PacketIo, PacketVerdict, Pep, Postpone, QueuePosition, Side,
};
use std::collections::{BTreeSet, VecDeque};

/// Packets that wait, and the results of earlier ones. A verdict takes effect when it is flushed, as in the kernel.
#[derive(Debug, Default)]
pub struct FakePath {
    waiting: VecDeque<Arrival>,
    received: u64,
    concluded: u64,
    /// Numbers of the postponed packets.
    postponed: BTreeSet<u64>,
    buffered: Vec<(Side, Vec<u8>)>,
    /// Packets that have arrived at the two hosts.
    pub arrived: Arrived,
    /// Fate of injected packets.
    pub injected: Option<InjectResult>,
    /// Packets that the queue to the mobile side has dropped, not reported yet.
    pub dropped: VecDeque<Bytes>,
    /// Set if the path is broken: every call fails.
    pub error: Option<Broken>,
}

/// Error of a broken [`FakePath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl FakePath {
    /// Adds a packet from a side.
    pub fn offer(&mut self, from: Side, packet: impl Into<Bytes>) {
        let id = self.received + self.waiting.len() as u64;
        self.waiting.push_back(Arrival { id, from, packet: packet.into() });
    }

    /// Returns the number of packets that were postponed and have no verdict yet.
    #[must_use]
    pub fn postponed(&self) -> usize {
        self.postponed.len()
    }

    /// Returns the number of packets that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn check(&self) -> Result<(), Broken> {
        self.error.map_or(Ok(()), Err)
    }
}

impl PacketIo for FakePath {
    type Error = Broken;

    fn receive(&mut self) -> Result<Option<Arrival>, Broken> {
        self.check()?;
        assert_eq!(self.received, self.concluded, "each is concluded before the next one is asked for");
        let arrival = self.waiting.pop_front();
        self.received += u64::from(arrival.is_some());
        Ok(arrival)
    }

    fn set_verdict(&mut self, arrival: Arrival, fate: PacketVerdict) -> Result<(), Broken> {
        self.check()?;
        if !self.postponed.remove(&arrival.id) {
            assert_eq!(arrival.id, self.concluded, "in order, and once");
            self.concluded += 1;
        }
        match fate {
            PacketVerdict::Forward => self.buffered.push((arrival.from.other(), arrival.packet.to_vec())),
            PacketVerdict::Replace(packet) => self.buffered.push((arrival.from.other(), packet)),
            PacketVerdict::Drop => {}
        }
        Ok(())
    }

    fn inject(&mut self, to: Side, _turn: QueuePosition, packet: &[u8]) -> Result<InjectResult, Broken> {
        self.flush()?;
        let injected = self.injected.unwrap_or(InjectResult::Sent);
        if injected == InjectResult::Sent {
            self.buffered.push((to, packet.to_vec()));
        }
        Ok(injected)
    }

    fn flush(&mut self) -> Result<(), Broken> {
        self.check()?;
        for (to, packet) in self.buffered.drain(..) {
            match to {
                Side::Fixed => self.arrived.fixed.push(packet),
                Side::Mobile => self.arrived.mobile.push(packet),
            }
        }
        Ok(())
    }

    fn next_dropped(&mut self) -> Option<Bytes> {
        self.dropped.pop_front()
    }
}

impl Postpone for FakePath {
    fn postpone(&mut self, arrival: &Arrival) -> Result<(), Broken> {
        self.check()?;
        assert_eq!(arrival.id, self.concluded, "it was received last");
        self.concluded += 1;
        self.postponed.insert(arrival.id);
        Ok(())
    }
}

/// Snoop on a [`FakePath`].
#[derive(Debug)]
pub struct FakeMiddleboxPath {
    hosts: Connection,
    io: FakePath,
    driver: Driver<Snoop<Bytes>>,
}

impl FakeMiddleboxPath {
    /// Creates a place between these hosts.
    #[must_use]
    pub fn between(hosts: Connection) -> Self {
        Self { hosts, io: FakePath::default(), driver: Driver::new(Snoop::new(Config::modern())) }
    }
}

impl MiddleboxPath for FakeMiddleboxPath {
    fn hosts(&self) -> Connection {
        self.hosts
    }

    fn handle_packets(&mut self, now: Instant, from: Side, packets: &[Vec<u8>], arrivals: usize) -> Arrived {
        for packet in packets {
            self.io.offer(from, packet.clone());
        }
        while self.driver.pump(now, &mut self.io) == Ok(PumpResult::BatchFull) {}
        let arrived = std::mem::take(&mut self.io.arrived);
        assert_eq!(arrived.fixed.len() + arrived.mobile.len(), arrivals, "{:?}", self.driver.counts());
        arrived
    }

    fn counts(&self) -> Counts {
        *self.driver.counts()
    }

    fn stats(&self) -> Stats {
        self.driver.middlebox().stats()
    }
}
