//! [Neighborhood RED](hopline_queue::neighborhood_red) at a wireless interface of this host.
//!
//! The node has three inputs:
//!
//! - channel times of the radio, from its driver or from any other [`Source`];
//! - frames received at the interface, including notices;
//! - packets that wait in an [NFQUEUE](crate::nfqueue), and are dropped or marked when a neighbour is congested.
//!
//! The firewall rules queue packets from the radio before routing, and packets to the radio last. A forwarded packet is
//! therefore offered twice, as in the simulator:
//!
//! ```text
//! iptables -t mangle -A PREROUTING -i wlan0 -j NFQUEUE --queue-num 9 --queue-bypass
//! iptables -t mangle -A POSTROUTING -o wlan0 -j NFQUEUE --queue-num 9 --queue-bypass
//! ```
//!
//! Use the same rules with `ip6tables`. No input is answered at once: notices are sent at times set by the state
//! machine's clock.

mod frame;
mod member;
mod metrics;
mod neighbours;
mod packet;
mod samples;

pub use frame::{Frame, FrameContent};
pub use samples::{NoReading, Reading, Source, survey};

use crate::nfqueue::{self, PacketQueue, QueuedPacket};
use crate::service::{Service, ServiceStatus};
use hopline_core::{Duration, Instant, Purpose, RandomStream};
use hopline_linux::Error;
use hopline_linux::frames::FrameSocket;
use hopline_linux::watched::WatchedInterfaces;
use hopline_proxy::PacketVerdict;
use hopline_queue::neighborhood_red::config::{Delivery, IncomingPolicy, Limits, NoticeLimits};
use hopline_queue::neighborhood_red::{self, NeighborhoodRed};
use hopline_wire::ncn;
use member::{Direction, Member};
use metrics::{Traffic, metrics};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use samples::{ChannelMeter, OpenSource};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};

/// Configuration of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The wireless interface, with an IPv4 address. It appears as an Ethernet interface, as those of 802.11 do.
    pub interface: String,
    /// Source of the channel times of the radio. Default: the driver.
    pub source: Source,
    /// Silence of the source after which the channel counts as idle. Above 0; default 1 s.
    pub silence: Duration,
    /// Configuration of the state machine. The default is that for the channel, with notices to all neighbours and the
    /// guard: a node receives unicast frames of its neighbours only if its driver lets it, and notices are not
    /// authenticated. Notices cannot be relayed here ([`IncomingPolicy::Relayed`]), since the next hop of a packet in the queue
    /// is unknown.
    pub machine: neighborhood_red::Config,
    /// UDP port of notices, 1 to 65,535, the same at all nodes. Default 1022.
    pub port: u16,
    /// Number of the NFQUEUE, as in the rules: 0 to 65,535.
    pub queue: u16,
    /// Maximum number of packets in the queue, 1 or more; further ones pass. Default 4096.
    pub queue_length: u32,
    /// Seed of the random numbers; `None`: from the system. Default `None`.
    pub seed: Option<u64>,
}

impl Config {
    /// Returns the defaults for this interface, queue and channel bit rate, which must not be 0.
    #[must_use]
    pub fn new(interface: impl Into<String>, bandwidth_bps: u64, queue: u16) -> Self {
        Self {
            interface: interface.into(),
            source: Source::Survey,
            silence: Duration::from_secs(1),
            machine: neighborhood_red::Config {
                delivery: Delivery::Broadcast,
                notice_limits: NoticeLimits::On(Limits::DEFAULT),
                ..neighborhood_red::Config::for_bandwidth(bandwidth_bps)
            },
            port: ncn::PORT,
            queue,
            queue_length: 4096,
            seed: None,
        }
    }

    /// Checks the ranges of all fields.
    ///
    /// # Errors
    /// The requirement of the first field that violates it.
    pub fn validate(&self) -> Result<(), &'static str> {
        self.machine.validate()?;
        let rules = [
            (!self.silence.is_zero(), "a silence above 0"),
            (self.port != 0, "a port above 0"),
            (
                self.machine.incoming == IncomingPolicy::Dropped,
                "incoming packets that are dropped: notices are not passed on here",
            ),
        ];
        rules.iter().find(|(ok, _)| !ok).map_or(Ok(()), |(_, must)| Err(must))
    }
}

/// A node with Neighborhood RED, as a service.
#[derive(Debug)]
pub struct Neighborhood {
    member: Member,
    source: OpenSource,
    frames: FrameSocket,
    gate: PacketQueue,
    /// Holds the port of notices, so that the kernel does not answer a notice with "port unreachable". Never read.
    _port: Socket,
    traffic: Traffic,
    watched: WatchedInterfaces,
    start: std::time::Instant,
}

/// Interval between updates of the metrics and checks of the interface.
const UPDATE_INTERVAL: Duration = Duration::from_millis(250);

impl Neighborhood {
    /// Binds the queue, the sockets and the source, in the calling thread's namespace. Packets wait until the service
    /// runs.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`, `CAP_NET_RAW` and, for a port below 1024, `CAP_NET_BIND_SERVICE`;
    /// without NFQUEUE or nl80211 in the kernel; if there is no such interface. An error if another process has bound the
    /// queue or the port, or if the configuration is invalid.
    pub fn open(config: &Config) -> Result<Self, Error> {
        config.validate().map_err(|must| {
            let wrong = io::Error::new(io::ErrorKind::InvalidInput, format!("it must have {must}"));
            Error::system("reading the configuration of Neighborhood RED", wrong)
        })?;
        let frames = FrameSocket::open(&config.interface)?;
        let source = OpenSource::new(&config.source, frames.interface())?;
        let port = reserve_port(config)?;
        let seed = config.seed.map_or_else(system_seed, Ok)?;
        // Neighbours with the same seed must not draw the same random times.
        let stream = RandomStream::keyed(seed, 0, frames.ip().to_bits().into(), Purpose::Neighborhood);
        let machine = NeighborhoodRed::new(config.machine, frames.ip(), Instant::ZERO, stream);
        let meter = ChannelMeter::new(Instant::ZERO, config.silence);
        let member = Member::new(machine, meter, (frames.address(), frames.ip()), config.port);
        let queue = nfqueue::Config { length: config.queue_length, ..nfqueue::Config::new(config.queue, "") };
        let gate = PacketQueue::open(&queue)?;
        #[expect(clippy::disallowed_methods, reason = "the channel is in real time")]
        let start = std::time::Instant::now();
        let (traffic, watched) = (Traffic::default(), WatchedInterfaces::new([config.interface.as_str()])?);
        Ok(Self { member, source, frames, gate, _port: port, traffic, watched, start })
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// Processes all pending events.
    fn process(&mut self) -> io::Result<()> {
        let now = self.now();
        self.handle_frames(now)?;
        if self.member.poll_timeout().is_some_and(|due| due <= now) {
            let source = &mut self.source;
            self.member.handle_timeout(now, || source.read());
        }
        while let Some(frame) = self.member.poll_transmit(now) {
            match self.frames.send(&frame) {
                Ok(()) => self.traffic.notices += 1,
                Err(_) => self.traffic.send_failures += 1,
            }
        }
        for passing in self.gate.receive()? {
            let fate = self.handle_packet(now, &passing);
            self.gate.set_verdict(&passing, &fate);
        }
        self.gate.flush()
    }

    fn handle_frames(&mut self, now: Instant) -> io::Result<()> {
        let member = &mut self.member;
        match self.frames.receive(|frame| member.handle_frame(now, frame)) {
            Ok(_) => Ok(()),
            // The interface is down and may come up again, or it is about to be deleted, which `WatchedInterfaces` detects.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn handle_packet(&mut self, now: Instant, passing: &QueuedPacket) -> PacketVerdict {
        let radio = Some(self.frames.interface());
        let way = match (passing.in_interface == radio, passing.out_interface == radio) {
            (_, true) => Some(Direction::Transmit),
            (true, false) => Some(Direction::Receive),
            (false, false) => None,
        };
        match (way, &passing.packet) {
            (Some(way), Some(packet)) => self.member.handle_packet(now, packet, way),
            _ => {
                self.traffic.ineligible += 1;
                PacketVerdict::Forward
            }
        }
    }

    /// Waits for an event, until `until` at the latest. Returns whether the service has to stop.
    fn wait(&self, stop: BorrowedFd<'_>, until: Instant) -> io::Result<WaitResult> {
        let wait = until.since(self.now());
        let mut waited = [self.gate.as_fd(), self.frames.as_fd(), stop]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let (secs, nanos) = (wait.as_nanos() / 1_000_000_000, wait.as_nanos() % 1_000_000_000);
        let timeout = Timespec { tv_sec: secs as i64, tv_nsec: nanos as _ };
        match poll(&mut waited, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(if waited[2].revents().is_empty() { WaitResult::Ready } else { WaitResult::Stopped })
    }

    fn write_metrics(&mut self, ledger: &ServiceStatus) {
        self.traffic.troubles = self.gate.error_counts();
        ledger.set_metrics(metrics(self.now(), &self.member, &self.traffic));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitResult {
    Stopped,
    Ready,
}

impl Service for Neighborhood {
    fn run(mut self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
        let mut figures_due = Instant::ZERO;
        let ended = loop {
            if let Err(error) = self.process() {
                break Err(error);
            }
            if self.now() >= figures_due {
                self.write_metrics(ledger);
                figures_due = self.now() + UPDATE_INTERVAL;
                if let Err(gone) = self.watched.check() {
                    break Err(gone);
                }
            }
            let until = self.member.poll_timeout().map_or(figures_due, |due| due.min(figures_due));
            match self.wait(stop, until) {
                Ok(WaitResult::Ready) => {}
                Ok(WaitResult::Stopped) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.write_metrics(ledger);
        ended
    }
}

fn reserve_port(config: &Config) -> Result<Socket, Error> {
    let taking = |e| Error::new(format!("taking UDP port {} at {}", config.port, config.interface), e);
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).map_err(taking)?;
    let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, config.port);
    let set_up = || {
        socket.bind_device(Some(config.interface.as_bytes()))?;
        // The kernel applies its minimum; datagrams that do not fit are dropped.
        socket.set_recv_buffer_size(0)?;
        socket.bind(&any.into())
    };
    set_up().map_err(taking)?;
    Ok(socket)
}

fn system_seed() -> Result<u64, Error> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed)
        .map_err(|e| Error::system("asking the system for a random number", io::Error::other(e)))?;
    Ok(u64::from_ne_bytes(seed))
}
