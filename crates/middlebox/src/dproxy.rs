//! D-Proxy for TCP, at one end of a lossy link. It receives by NFQUEUE the packets that the kernel forwards over the
//! link, or sends and receives there itself, and communicates with the peer over UDP.
//!
//! ```text
//! iptables -A FORWARD -o wlan0 -p tcp -j NFQUEUE --queue-num 7 --queue-bypass
//! iptables -A FORWARD -i wlan0 -p tcp -j NFQUEUE --queue-num 7 --queue-bypass
//! ```
//!
//! If this host itself is an end of the TCP connections, use the same rules in `INPUT` (`-i`) and `OUTPUT` (`-o`, with
//! `-m mark ! --mark 0x686f`, so that retransmissions pass). A packet behind a gap waits in the kernel's queue for its
//! verdict. If this process ends, the packet is lost, and TCP repairs that.
//!
//! A packet that the interface's queue drops is left to the sender ([`qdisc`](hopline_linux::qdisc)). A packet that a later queue
//! drops is repaired like a loss of the link.

use crate::nfqueue::{self, Queue};
use crate::peer_socket::{PeerSocket, random_incarnation};
use crate::service::{Metric, Notice, Service, ServiceStatus};
use bytes::Bytes;
use hopline_core::{Duration, Instant};
use hopline_linux::Error;
use hopline_linux::event_loop::{Clock, MetricsTimer, WaitResult};
use hopline_proxy::dproxy::{self as machine, Key, RecoveryConfig, SampleRule, Translation};
use hopline_proxy::driver::{PairDriver, PumpResult};
use hopline_proxy::{PeerStatus, QueuePosition};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Configuration of one end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The queue; its `mobile` is the interface that leads to the peer. `length` must be above `machine.max_waiting`, or
    /// waiting packets leave no room, and further packets pass unprocessed. Default 8192.
    pub queue: nfqueue::Config,
    /// UDP port of messages at both ends. Default 1022.
    pub port: u16,
    /// Configuration of the middlebox, with the addresses of both ends and their key. Here retransmissions go ahead of
    /// packets that wait at the interface. The average recovery time is that of recoveries with one request, and at least
    /// 2 ms, since threads wake late.
    pub machine: machine::Config,
}

impl Config {
    /// Returns the defaults: queue `number`, before the interface that leads to `peer`.
    #[must_use]
    pub fn new(number: u16, interface: impl Into<String>, ends: [impl Into<IpAddr>; 2], key: Key) -> Self {
        let [local, peer] = ends;
        let floor = Duration::from_millis(2);
        let recovery = RecoveryConfig {
            sample_rule: SampleRule::SingleRequest,
            min_average: floor,
            ..RecoveryConfig::default()
        };
        Self {
            queue: nfqueue::Config { length: 8192, ..nfqueue::Config::new(number, interface) },
            port: hopline_wire::dproxy::PORT,
            machine: machine::Config {
                queue_position: QueuePosition::Front,
                recovery,
                translation: Translation::Possible,
                ..machine::Config::new(local, peer, key)
            },
        }
    }
}

/// One end of a link, ready to run.
#[derive(Debug)]
pub struct DProxy {
    queue: Queue,
    socket: PeerSocket,
    driver: PairDriver,
    peer: IpAddr,
    /// Last reported state of the peer.
    peer_state: PeerStatus,
    /// Messages that could not be sent, for lack of room or of a route.
    send_failures: u64,
}

impl DProxy {
    /// Binds the queue and the port, in the calling thread's namespace. Packets wait for verdicts from now on.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN` and `CAP_NET_RAW`, without NFQUEUE in the kernel, if there is no
    /// such interface, or if another process has bound the queue; [`Error::System`] if the port is in use, if `local` is
    /// no address of this host, or if there is no route to `peer`.
    pub fn open(config: &Config) -> Result<Self, Error> {
        let machine::Config { local, peer, .. } = config.machine;
        let socket = PeerSocket::open(local, peer, config.port, Some(&config.queue.mobile))?;
        let queue = Queue::open(&config.queue)?;
        let driver = PairDriver::new(config.machine, random_incarnation()?);
        Ok(Self { queue, socket, driver, peer, peer_state: PeerStatus::default(), send_failures: 0 })
    }

    /// Processes received packets and expired timers. Returns whether more packets may be waiting.
    fn poll(&mut self, now: Instant) -> io::Result<bool> {
        let (driver, peer) = (&mut self.driver, self.peer);
        let more = self.socket.receive(|datagram: Bytes| driver.handle_datagram(now, peer, &datagram))?;
        let (socket, unsaid) = (&mut self.socket, &mut self.send_failures);
        let pumped = self.driver.pump(now, &mut self.queue, |turn, datagram| {
            *unsaid += u64::from(!socket.send(turn, datagram).is_sent());
        })?;
        Ok(more || pumped == PumpResult::BatchFull)
    }

    fn metrics(&self) -> Vec<Metric> {
        [&self.packet_metrics()[..], &self.peer_metrics(), &self.hole_metrics(), &self.message_metrics()]
            .concat()
    }

    fn packet_metrics(&self) -> [Metric; 10] {
        let (driver, counts, queue) = (&self.driver, self.driver.counts(), self.queue.counts());
        let passed = queue.not_crossing
            + queue.asymmetric
            + queue.truncated
            + queue.incomplete
            + counts.bypassed.total();
        [
            Metric::gauge("connections", "Connections that are known", driver.connections() as u64),
            Metric::counter(
                "flows_evicted",
                "Connections forgotten for others",
                driver.stats().flows_evicted,
            ),
            Metric::gauge(
                "packets_held",
                "Packets that wait for earlier ones",
                driver.waiting_packets().into(),
            ),
            Metric::gauge("packets_kept", "Packets that could be sent again", driver.cached() as u64),
            Metric::counter("segments_out", "Segments that went out over the link", counts.sent),
            Metric::counter("segments_in", "Segments that came over the link", counts.received),
            Metric::counter("packets_untouched", "Packets that passed without the machine", passed),
            Metric::counter("packets_postponed", "Packets that waited for earlier ones", counts.postponed),
            Metric::counter("packets_sent_again", "Packets sent over the link again", counts.replayed),
            Metric::counter("packets_refused", "Packets that could not be sent again", counts.refused),
        ]
    }

    fn hole_metrics(&self) -> [Metric; 5] {
        let (recovery, too_much) = (self.driver.recovery(), self.driver.stats().overflowed);
        [
            Metric::counter("requests", "Requests made of the other end", recovery.requests),
            Metric::counter("holes_recovered", "Holes filled after they were asked for", recovery.recovered),
            Metric::counter("holes_given_up", "Holes that nobody filled in time", recovery.given_up),
            Metric::counter("holes_overflowed", "Holes given up because too much waited", too_much),
            Metric::counter("holes_left_to_sender", "Holes of what is not kept", recovery.not_cached),
        ]
    }

    fn peer_metrics(&self) -> [Metric; 4] {
        let (counts, peer) = (self.driver.counts(), self.driver.peer());
        [
            Metric::gauge(
                "peer_ready",
                "Whether the other end is there: 1 or 0",
                (peer == PeerStatus::Present).into(),
            ),
            Metric::counter(
                "sessions",
                "Sessions begun: one for each life of the other end",
                counts.sessions,
            ),
            Metric::counter("greetings_sent", "Greetings sent", counts.handshakes),
            Metric::counter(
                "greetings_forged",
                "Greetings without the right proof",
                counts.handshakes_forged,
            ),
        ]
    }

    fn message_metrics(&self) -> [Metric; 7] {
        let (stats, counts) = (self.driver.stats(), self.driver.counts());
        let sent = (counts.messages + counts.handshakes).saturating_sub(self.send_failures);
        let malformed = stats.malformed + counts.malformed + self.socket.truncated;
        let gone = self.socket.unreachable;
        [
            Metric::counter("messages_sent", "Messages and greetings to the other end", sent),
            Metric::counter("messages_unsaid", "Messages that found no room, or no way", self.send_failures),
            Metric::counter("messages_malformed", "Messages that are none", malformed),
            Metric::counter("messages_forged", "Messages without the right proof", stats.forged),
            Metric::counter("messages_early", "Messages of no session that stands", stats.without_session),
            Metric::counter("messages_replayed", "Messages that had come before", stats.replays_refused),
            Metric::counter("peer_unreachable", "Times that the network said that nobody is there", gone),
        ]
    }
}

impl Service for DProxy {
    fn run(mut self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
        let (clock, mut written) = (Clock::start(), MetricsTimer::default());
        loop {
            let now = clock.now();
            let due = if self.poll(now)? { Some(now) } else { self.driver.poll_timeout() };
            if self.peer_state != self.driver.peer() {
                self.peer_state = self.driver.peer();
                let without = "packets pass without repair";
                let notice = Notice::of_peer(self.peer_state, &self.peer.to_string(), without);
                notice.into_iter().for_each(|notice| ledger.report(notice));
            }
            if written.is_due(now) {
                ledger.set_metrics(self.metrics());
                self.queue.check_interface()?;
            }
            if clock.wait([self.queue.as_fd(), self.socket.as_fd()], stop, due)? == WaitResult::Stopped {
                ledger.set_metrics(self.metrics());
                return Ok(());
            }
        }
    }
}
