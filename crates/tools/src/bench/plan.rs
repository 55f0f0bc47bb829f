//! Parameters of a test.

use super::error::Error;
use super::refusal::Bound;
use hopline_linux::tcp;
use socket2::{Domain, Socket, Type};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Maximum number of data streams of a test.
pub const MAX_STREAMS: u8 = 128;
/// Maximum bytes of one write.
pub const MAX_LENGTH: u32 = 1 << 20;
/// Minimum bytes of a datagram: room for the header.
pub(super) const MIN_DATAGRAM: u32 = 16;
/// Maximum bytes of a datagram.
pub(super) const MAX_DATAGRAM: u32 = 65_507;
/// Maximum blocks of a burst.
pub(super) const MAX_BURST: u32 = 1000;
/// Maximum bytes of a title.
pub(super) const MAX_TITLE: usize = 256;
/// Maximum duration of a test, and of the omission before it.
pub const MAX_TIME: Duration = Duration::from_secs(86_400);
/// Maximum bytes of the name of a congestion control algorithm: Linux's `TCP_CA_NAME_MAX`, without the terminating zero.
pub(super) const MAX_NAME: usize = 15;

/// One test. The client defines it and sends it to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Transport of the data.
    pub transport: Transport,
    /// Direction of the data.
    pub direction: Direction,
    /// End of the test.
    pub limit: Limit,
    /// Time at the start that counts neither in the totals nor towards the limit. At most [`MAX_TIME`].
    pub omit: Duration,
    /// Parallel data streams. Range 1–[`MAX_STREAMS`].
    pub streams: u8,
    /// Bytes of one write, on both sides; with UDP, of one datagram. Range 1–[`MAX_LENGTH`], with UDP 16–65507. `None`:
    /// iperf3's default, which is 128 KiB or, with UDP, the segment size of the path.
    pub length: Option<u32>,
    /// Sending rate of each stream.
    pub rate: Rate,
    /// Socket options of the data streams.
    pub socket_options: SocketOptions,
    /// Time of the latency probes before the test and after it, at most a minute. `None`: no probes.
    pub probes: Option<Duration>,
    /// Selects whether the client asks for the server's output.
    pub output: Output,
    /// Prefix of every line of the client's output, also sent to the server.
    pub title: Option<String>,
}

/// Sending rate of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Bits per second; 0: unlimited.
    pub bps: u64,
    /// Blocks sent back to back before pacing applies; 0 and 1 are equivalent. Range 0–1000.
    pub burst: u32,
}

/// Socket options of data streams. They do not apply to TPA, which has one socket for all streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Nagle's algorithm, for TCP.
    pub nagle: Nagle,
    /// Method of passing data to the kernel.
    pub copy: CopyMode,
    /// Socket buffer in bytes, in each direction. `None`: the system's default.
    pub buffer: Option<u32>,
    /// Maximum segment size in bytes, for TCP. `None`: the system's default.
    pub mss: Option<u16>,
    /// Type of service or traffic class, for TCP and UDP.
    pub tos: u8,
}

/// State of Nagle's algorithm (RFC 896).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nagle {
    /// TCP delays small segments.
    #[default]
    On,
    /// TCP sends small segments at once (`TCP_NODELAY`).
    Off,
}

/// Method of passing data to TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyMode {
    /// The kernel copies the data that are written.
    #[default]
    Copy,
    /// The kernel sends the pages of a file (`sendfile(2)`).
    ZeroCopy,
}

/// Output that the client shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// The client's own output only.
    #[default]
    ClientOnly,
    /// The server's output too.
    WithServer,
}

/// Transport of the data, and its parameters at the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TPA over UDP.
    Tpa {
        /// Maximum congestion window, in segments. Range 1–12.
        cwnd_max: u8,
    },
    /// TPA-wide over UDP, encrypted, with the control connection over TCP.
    TpaWide,
    /// The kernel's TCP.
    Tcp {
        /// Congestion control algorithm. `None`: the default of the sender's system.
        congestion_control: Option<CongestionControl>,
    },
    /// UDP, with the control connection over TCP.
    Udp,
}

/// Name of a congestion control algorithm of the kernel. A kernel need not have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CongestionControl(String);

/// Direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The client sends.
    Forward,
    /// The server sends.
    Reverse,
    /// Both send at the same time, over separate streams.
    Both,
}

/// End of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Duration, above zero and at most [`MAX_TIME`].
    Time(Duration),
    /// Bytes that arrive over all streams, at least one.
    Bytes(u64),
}

impl Plan {
    /// Returns the defaults: 10 s, one stream, the client sends; UDP at 1 Mb/s.
    #[must_use]
    pub fn new(transport: Transport) -> Self {
        let bps = if transport == Transport::Udp { 1_000_000 } else { 0 };
        Self {
            transport,
            direction: Direction::Forward,
            limit: Limit::Time(Duration::from_secs(10)),
            omit: Duration::ZERO,
            streams: 1,
            length: None,
            rate: Rate { bps, burst: 0 },
            socket_options: SocketOptions::default(),
            probes: None,
            output: Output::ClientOnly,
            title: None,
        }
    }

    /// Checks that every parameter is in its range.
    ///
    /// # Errors
    /// [`Error::Plan`], with the first parameter that is not.
    pub fn validate(&self) -> Result<(), Error> {
        let check = |ok, bound| if ok { Ok(()) } else { Err(Error::Plan(bound)) };
        check((1..=MAX_STREAMS).contains(&self.streams), Bound::Streams)?;
        let length = self.length.unwrap_or(MIN_DATAGRAM);
        match self.transport {
            Transport::Udp => check((MIN_DATAGRAM..=MAX_DATAGRAM).contains(&length), Bound::Datagram)?,
            _ => check((1..=MAX_LENGTH).contains(&length), Bound::Length)?,
        }
        check(self.rate.burst <= MAX_BURST, Bound::Burst)?;
        check(self.probes.unwrap_or_default() <= Duration::from_secs(60), Bound::Probes)?;
        check(self.title.as_deref().unwrap_or_default().len() <= MAX_TITLE, Bound::Title)?;
        check(self.omit <= MAX_TIME, Bound::Omission)?;
        match self.limit {
            Limit::Time(time) => check(!time.is_zero() && time <= MAX_TIME, Bound::Time)?,
            Limit::Bytes(bytes) => check(bytes > 0, Bound::Bytes)?,
        }
        match self.transport {
            Transport::Tpa { cwnd_max } => check((1..=12).contains(&cwnd_max), Bound::Window),
            Transport::TpaWide | Transport::Tcp { .. } | Transport::Udp => Ok(()),
        }
    }

    /// Returns the number of streams, over both directions.
    pub(super) fn all_streams(&self) -> usize {
        usize::from(self.streams) * if self.direction == Direction::Both { 2 } else { 1 }
    }
}

impl Transport {
    /// Returns the name of the transport.
    #[must_use]
    pub const fn protocol(&self) -> &'static str {
        match self {
            Self::Tpa { .. } => "TPA",
            Self::TpaWide => "TPA-wide",
            Self::Tcp { .. } => "TCP",
            Self::Udp => "UDP",
        }
    }
}

impl CongestionControl {
    /// Returns the algorithm of that name, if a kernel could have it: 1 to 15 characters of a–z, 0–9, `_` and `-`.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=MAX_NAME).contains(&name.len());
        let taken = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_' || c == b'-';
        (fits && name.bytes().all(taken)).then(|| Self(name.to_owned()))
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Checks that this kernel lets this process use the algorithm.
    ///
    /// # Errors
    /// [`NoSuchCongestionControl`](hopline_linux::Error::NoSuchCongestionControl), with the algorithms that the kernel
    /// has, and [`ForbiddenCongestionControl`](hopline_linux::Error::ForbiddenCongestionControl), with those that every user may
    /// use.
    pub fn check_here(&self) -> Result<(), hopline_linux::Error> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None);
        let socket = socket.map_err(|e| hopline_linux::Error::system("making a socket", e))?;
        tcp::set_congestion_control(&socket, &self.0)
    }
}

impl fmt::Display for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reason that a text is not the name of a transport.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportProblem {
    /// There is no transport of that name.
    #[error(
        "there are `tpa`, `tpa-wide`, `udp`, `tcp` (this system's default congestion control) and `tcp:NAME`, NAME being one of: {offered}"
    )]
    Unknown {
        /// Congestion control algorithms of this kernel, separated by spaces.
        offered: String,
    },
    /// The kernel does not have the congestion control algorithm, or reserves it for root.
    #[error("{0}")]
    CongestionControl(String),
}

/// Parses `tpa`, with the window that `hopline send` uses, `tpa-wide`, `udp`, `tcp` or `tcp:NAME`. The algorithm must be
/// usable on this host. If the peer is the sender, the peer may still reject it.
impl FromStr for Transport {
    type Err = TransportProblem;

    fn from_str(text: &str) -> Result<Self, TransportProblem> {
        let unknown = || TransportProblem::Unknown { offered: tcp::offered_congestion_controls() };
        match text.split_once(':') {
            None if text == "tpa" => Ok(Self::Tpa { cwnd_max: DEFAULT_CWND_MAX }),
            None if text == "tpa-wide" => Ok(Self::TpaWide),
            None if text == "udp" => Ok(Self::Udp),
            None if text == "tcp" => Ok(Self::Tcp { congestion_control: None }),
            Some(("tcp", name)) => {
                let control = CongestionControl::new(name).ok_or_else(unknown)?;
                control.check_here().map_err(|e| TransportProblem::CongestionControl(e.to_string()))?;
                Ok(Self::Tcp { congestion_control: Some(control) })
            }
            _ => Err(unknown()),
        }
    }
}

/// Default of `cwnd_max` in [`Transport::Tpa`], as in `hopline send`.
pub const DEFAULT_CWND_MAX: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_names_match_the_command_line() {
        assert_eq!("tpa".parse(), Ok(Transport::Tpa { cwnd_max: 6 }));
        assert_eq!("tpa-wide".parse(), Ok(Transport::TpaWide));
        assert_eq!("tcp".parse(), Ok(Transport::Tcp { congestion_control: None }));
        // Every Linux kernel has Reno, and every user may use it.
        let reno = CongestionControl::new("reno");
        assert_eq!("tcp:reno".parse(), Ok(Transport::Tcp { congestion_control: reno }));
    }

    #[test]
    fn an_unknown_transport_is_answered_with_the_known_ones() {
        for wrong in [
            "",
            "UDP",
            "TPA",
            "tpa:3",
            "tpa-wide:3",
            "tcp:",
            "tcp:Reno",
            "tcp:reno ",
            "tcp:a-name-of-16-chars",
        ] {
            let problem = wrong.parse::<Transport>().unwrap_err();
            assert!(matches!(&problem, TransportProblem::Unknown { .. }), "{wrong}");
            assert!(problem.to_string().contains("`tcp:NAME`, NAME being one of: "), "{problem}");
            assert!(problem.to_string().contains("reno"), "{problem}");
        }
        let problem = "tcp:nosuch".parse::<Transport>().unwrap_err().to_string();
        assert!(problem.starts_with("there is no congestion control `nosuch` here; this kernel has: "));
    }

    #[test]
    fn a_plan_out_of_range_is_rejected_with_the_range() {
        let good = Plan {
            transport: Transport::Tpa { cwnd_max: 12 },
            direction: Direction::Forward,
            limit: Limit::Bytes(1),
            omit: Duration::ZERO,
            streams: MAX_STREAMS,
            length: Some(MAX_LENGTH),
            ..Plan::new(Transport::Udp)
        };
        good.validate().unwrap();
        let wrong: [fn(&mut Plan); 12] = [
            |p| p.streams = 0,
            |p| p.streams = 129,
            |p| p.length = Some(0),
            |p| p.length = Some(MAX_LENGTH + 1),
            |p| p.rate.burst = 1001,
            |p| p.title = Some("x".repeat(257)),
            |p| p.limit = Limit::Bytes(0),
            |p| p.limit = Limit::Time(Duration::ZERO),
            |p| p.limit = Limit::Time(MAX_TIME + Duration::from_nanos(1)),
            |p| p.omit = MAX_TIME + Duration::from_nanos(1),
            |p| p.transport = Transport::Tpa { cwnd_max: 13 },
            |p| p.transport = Transport::Udp,
        ];
        for (i, change) in wrong.iter().enumerate() {
            let mut plan = good.clone();
            change(&mut plan);
            assert!(matches!(plan.validate(), Err(Error::Plan(_))), "{i}");
        }
    }
}
