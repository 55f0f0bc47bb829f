//! NFQUEUE: forwarded packets wait in the kernel for a verdict of this process. Rules of iptables or nftables select
//! them.
//!
//! ```text
//! iptables -A FORWARD -o wlan0 -p tcp -j NFQUEUE --queue-num 7 --queue-bypass
//! iptables -A FORWARD -i wlan0 -p tcp -j NFQUEUE --queue-num 7 --queue-bypass
//! ```
//!
//! With `--queue-bypass`, packets pass while no process has bound the queue. The message formats are those of
//! linux/netfilter/nfnetlink_queue.h; this module encodes and decodes them without a library. One system call receives up
//! to 64 packets, and one sends the verdicts on them. Consecutive accepted packets share one message
//! (`NFQNL_MSG_VERDICT_BATCH`).
//!
//! Injected packets leave through a raw socket with a mark, and do not traverse the rules of `FORWARD` again. Urgent ones
//! have the priority of interactive traffic. They go first if the interface's queue supports priorities (`pfifo_fast`,
//! `prio`) and is the queue in which packets wait.
//!
//! The drops of the mobile interface's queue are read from its counters ([`qdisc`](hopline_linux::qdisc)) and reported to the
//! middlebox ([`Pep::handle_progress`](hopline_proxy::Pep::handle_progress)). A queue may carry IPv4 and IPv6, as the rules of iptables,
//! ip6tables or nftables select. Limitation: drops in a network card's queue or behind the next hop are not reported.

mod drops;
mod inject;
mod message;
mod metrics;
mod middlebox;
mod next_hops;
mod packet_queue;
pub mod parse;
mod socket;
mod stats;
mod verdicts;

pub use inject::Injector;
pub(crate) use inject::{destination, raw_socket};
pub use metrics::MiddleboxMetrics;
pub use middlebox::{MiddleboxService, Replacer};
pub(crate) use packet_queue::{PacketQueue, QueuedPacket};
pub use stats::{QueueStats, queue_stats};

use bytes::Bytes;
use drops::DropDetector;
use hopline_linux::Error;
use hopline_linux::qdisc::Qdisc;
use hopline_linux::veth::Offload;
use hopline_proxy::{Arrival, InjectResult, PacketIo, PacketVerdict, Postpone, QueuePosition, Side};
use message::Setting;
use next_hops::{InjectRoute, NextHopCache, PacketContext};
use parse::{Completeness, Queued};
use rustix::net::netdevice::name_to_index;
use socket::QueueSocket;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use verdicts::{ReplaceResult, Verdicts};

/// Default mark of the packets that daemons inject.
pub const MARK: u32 = 0x686f;

/// Configuration of a [`Queue`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of the queue, as in the rule: 0 to 65,535.
    pub number: u16,
    /// Interface that leads to the mobile hosts. Packets that do not cross it, or that come in and leave by it, pass
    /// unchanged.
    pub mobile: String,
    /// Mark of injected packets; 0: none. Default [`MARK`].
    pub mark: u32,
    /// Maximum number of packets in the queue, 1 or more. Default 4096.
    pub length: u32,
    /// Treatment of packets when the queue is full. Default [`WhenFull::Pass`].
    pub when_full: WhenFull,
    /// Treatment of segment groups (GSO). Default [`Offload::SinglePackets`]: a middlebox sees segments as they are on the wire.
    /// Groups under [`Offload::Gso`], and packets with checksums that the network card is to complete, pass
    /// unprocessed.
    pub gso: Offload,
    /// Receive buffer of the socket, in bytes. Default 16 MB, some 10,000 packets with the kernel's overhead.
    pub receive_buffer: usize,
}

/// Treatment of a packet when the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It passes (`NFQA_CFG_F_FAIL_OPEN`).
    Pass,
    /// It is dropped.
    Drop,
}

impl Config {
    /// Returns the defaults for a queue with this number before this interface.
    #[must_use]
    pub fn new(number: u16, mobile: impl Into<String>) -> Self {
        Self {
            number,
            mobile: mobile.into(),
            mark: MARK,
            length: 4096,
            when_full: WhenFull::Pass,
            gso: Offload::SinglePackets,
            receive_buffer: 16 << 20,
        }
    }

    fn flags(&self) -> Setting {
        let mut set = 0;
        if self.when_full == WhenFull::Pass {
            set |= libc::NFQA_CFG_F_FAIL_OPEN;
        }
        if self.gso == Offload::Gso {
            set |= libc::NFQA_CFG_F_GSO;
        }
        let mask = (libc::NFQA_CFG_F_FAIL_OPEN | libc::NFQA_CFG_F_GSO) as u32;
        Setting::Flags { mask, set: set as u32 }
    }
}

/// Counters of a [`Queue`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets received from the kernel.
    pub packets: u64,
    /// Of those, passed because neither or both of their interfaces lead to mobile hosts.
    pub not_crossing: u64,
    /// Of those, passed because packets injected here would not follow them: routing rules lead those to another route,
    /// or to none.
    pub asymmetric: u64,
    /// Of those, passed because they were truncated.
    pub truncated: u64,
    /// Of those, passed because their checksums were incomplete, or they were GSO groups.
    pub incomplete: u64,
    /// Changed packets that were too long for a message, and passed unchanged.
    pub too_long: u64,
    /// Malformed messages.
    pub malformed: u64,
    /// Verdicts that the kernel rejected, for instance because the packet was lost with its interface.
    pub refused_verdicts: u64,
    /// Drops of the mobile interface's queue, over all packets.
    pub queue_drops: u64,
    /// Number of reads of the drop counter.
    pub drop_counter_reads: u64,
}

/// Bytes of verdicts that are sent even though more packets wait; well below the kernel's limit.
const FLUSH_THRESHOLD: usize = 64 << 10;

/// A queue bound by this process. It is released when the value is dropped, and the kernel then drops packets that wait
/// in it.
#[derive(Debug)]
pub struct Queue {
    config: Config,
    socket: QueueSocket,
    incoming: Incoming,
    verdicts: Verdicts,
    injector: Injector,
    next_hops: NextHopCache,
    qdisc: Qdisc,
    drop_detector: DropDetector,
    drop_counter_reads: u64,
    too_long: u64,
}

impl Queue {
    /// Binds the queue, in the calling thread's namespace. Packets wait for verdicts from now on.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN` and `CAP_NET_RAW`, without NFQUEUE in the kernel, or if another
    /// process has bound the queue; [`Error::NoSuchInterface`].
    pub fn open(config: &Config) -> Result<Self, Error> {
        let Config { number, mobile, .. } = config;
        let injector = Injector::new(config.mark)?;
        let follower = NextHopCache::open(config.mark)?;
        let qdisc = Qdisc::of(mobile)?;
        let mobile = name_to_index(&injector, mobile).map_err(|e| Error::of_interface(mobile, e))?;
        let mut incoming = Incoming::new(*number, mobile);
        let socket = open_socket(config, |packet| incoming.handle_queued(packet))?;
        let verdicts = Verdicts::new(*number);
        let refusals = DropDetector::default();
        let config = config.clone();
        Ok(Self {
            config,
            socket,
            incoming,
            verdicts,
            injector,
            next_hops: follower,
            qdisc,
            drop_detector: refusals,
            drop_counter_reads: 0,
            too_long: 0,
        })
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        let (malformed, refused_verdicts) = (self.socket.malformed, self.socket.refused);
        let Self { too_long, drop_counter_reads: looks, .. } = *self;
        let queue_drops = self.drop_detector.drops;
        Counts {
            malformed,
            refused_verdicts,
            too_long,
            queue_drops,
            drop_counter_reads: looks,
            ..self.incoming.counts
        }
    }

    /// Checks that the interface that leads to the mobile hosts still exists.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if it does not: no further packet will arrive.
    pub fn check_interface(&self) -> io::Result<()> {
        let Config { mobile, number, .. } = &self.config;
        match name_to_index(&self.injector, mobile) {
            Ok(index) if index == self.incoming.mobile => Ok(()),
            _ => Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("the interface {mobile} behind NFQUEUE {number} has gone"),
            )),
        }
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.verdicts.len() < FLUSH_THRESHOLD && !self.drop_detector.may_have_drops() {
            Ok(())
        } else {
            self.flush()
        }
    }

    /// Reads the drop counter, if packets that have passed may have been dropped.
    fn read_drop_counter(&mut self) -> io::Result<()> {
        if self.drop_detector.may_have_drops() {
            self.drop_counter_reads += 1;
            let now = self.qdisc.read()?;
            self.drop_detector.handle_reading(now);
        }
        Ok(())
    }
}

/// Opens and binds a queue. Packets that arrive meanwhile are passed to `take`.
fn open_socket(config: &Config, mut take: impl FnMut(Queued<'_>)) -> Result<QueueSocket, Error> {
    let number = config.number;
    let mut socket = QueueSocket::open(config.receive_buffer)?;
    let steps = [
        (Setting::Bind, "taking (does somebody else have it?)"),
        (Setting::CopyAll, "having packets copied from"),
        (Setting::Length(config.length.max(1)), "setting the length of"),
        (config.flags(), "setting the flags of"),
    ];
    for (setting, doing) in steps {
        socket
            .request(number, setting, &mut take)
            .map_err(|e| Error::new(format!("{doing} NFQUEUE {number}"), e))?;
    }
    Ok(socket)
}

impl PacketIo for Queue {
    type Error = io::Error;

    fn receive(&mut self) -> io::Result<Option<Arrival>> {
        if self.incoming.is_empty() {
            let incoming = &mut self.incoming;
            self.socket.receive(|packet| incoming.handle_queued(packet))?;
            self.next_hops.refresh();
        }
        while let Some(waiting) = self.incoming.next() {
            match waiting {
                PendingPacket::ForMiddlebox(arrival, crossing)
                    if self.next_hops.remember(&arrival.packet, crossing) =>
                {
                    return Ok(Some(arrival));
                }
                PendingPacket::ForMiddlebox(arrival, _) => {
                    self.incoming.counts.asymmetric += 1;
                    // The identifier has 32 bits.
                    self.verdicts.pass(arrival.id as u32);
                }
                PendingPacket::Pass { id } => self.verdicts.pass(id),
            }
        }
        Ok(None)
    }

    fn set_verdict(&mut self, arrival: Arrival, fate: PacketVerdict) -> io::Result<()> {
        // The identifier has 32 bits.
        let id = arrival.id as u32;
        if arrival.from == Side::Fixed && fate == PacketVerdict::Forward {
            self.drop_detector.record(arrival.packet);
        }
        match fate {
            PacketVerdict::Forward => self.verdicts.pass(id),
            PacketVerdict::Drop => self.verdicts.drop(id),
            PacketVerdict::Replace(packet) => {
                let replaced = self.verdicts.replace(id, &packet);
                self.too_long += u64::from(replaced == ReplaceResult::TooLong);
            }
        }
        self.flush_if_full()
    }

    fn inject(&mut self, to: Side, turn: QueuePosition, packet: &[u8]) -> io::Result<InjectResult> {
        self.flush()?;
        let injected = match self.next_hops.route(packet) {
            InjectRoute::Kernel => self.injector.send(turn, packet),
            InjectRoute::Via(hop) => self.injector.send_by(hop, turn, packet),
            InjectRoute::None => InjectResult::NoRoute,
        };
        match (to, injected) {
            (Side::Mobile, InjectResult::Sent) => self.drop_detector.record_injected(),
            (Side::Mobile, InjectResult::QueueFull) => self.drop_detector.record_send_failure(),
            _ => {}
        }
        Ok(injected)
    }

    fn flush(&mut self) -> io::Result<()> {
        let socket = &self.socket;
        self.verdicts.flush(|messages| socket.send(messages))?;
        self.read_drop_counter()
    }

    fn next_dropped(&mut self) -> Option<Bytes> {
        self.drop_detector.next()
    }
}

impl Postpone for Queue {
    fn postpone(&mut self, arrival: &Arrival) -> io::Result<()> {
        // The identifier has 32 bits.
        self.verdicts.postpone(arrival.id as u32);
        self.flush_if_full()
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Packets received and not yet requested.
#[derive(Debug)]
struct Incoming {
    queue: u16,
    /// Index of the interface that leads to the mobile hosts.
    mobile: u32,
    waiting: VecDeque<PendingPacket>,
    counts: Counts,
}

/// State of a received packet.
#[derive(Debug)]
enum PendingPacket {
    /// Waits for a verdict of the middlebox.
    ForMiddlebox(Arrival, PacketContext),
    /// Passes in its turn.
    Pass {
        /// Identifier of the packet in the kernel.
        id: u32,
    },
}

impl Incoming {
    fn new(queue: u16, mobile: u32) -> Self {
        Self { queue, mobile, waiting: VecDeque::new(), counts: Counts::default() }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn next(&mut self) -> Option<PendingPacket> {
        self.waiting.pop_front()
    }

    fn handle_queued(&mut self, queued: Queued<'_>) {
        if queued.queue != self.queue {
            return;
        }
        self.counts.packets += 1;
        let from =
            match (self.leads_to_mobile(queued.in_interface), self.leads_to_mobile(queued.out_interface)) {
                (false, true) => Some(Side::Fixed),
                (true, false) => Some(Side::Mobile),
                _ => None,
            };
        let passed = match (queued.completeness, from) {
            (Completeness::Whole, Some(from)) => {
                let packet = Bytes::copy_from_slice(queued.packet);
                let Queued { in_interface: came_by, out_interface: leaves_by, mark, .. } = queued;
                let crossing = PacketContext { in_interface: came_by, out_interface: leaves_by, mark };
                self.waiting.push_back(PendingPacket::ForMiddlebox(
                    Arrival { id: queued.id.into(), from, packet },
                    crossing,
                ));
                return;
            }
            (Completeness::Truncated, _) => &mut self.counts.truncated,
            (Completeness::Incomplete, _) => &mut self.counts.incomplete,
            (Completeness::Whole, None) => &mut self.counts.not_crossing,
        };
        *passed += 1;
        self.waiting.push_back(PendingPacket::Pass { id: queued.id });
    }

    fn leads_to_mobile(&self, interface: Option<u32>) -> bool {
        interface == Some(self.mobile)
    }
}

#[cfg(test)]
mod tests;
