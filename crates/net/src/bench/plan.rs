//! What is measured.

use super::error::Error;
use super::refusal::Bound;
use crate::tcp;
use socket2::{Domain, Socket, Type};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Most data streams of one test.
pub const MAX_STREAMS: u8 = 128;
/// Most bytes handed over at once.
pub const MAX_LENGTH: u32 = 1 << 20;
/// Fewest bytes in a datagram: what is counted by has room.
pub(super) const MIN_DATAGRAM: u32 = 16;
/// Most bytes in a datagram.
pub(super) const MAX_DATAGRAM: u32 = 65_507;
/// Most blocks of a burst.
pub(super) const MAX_BURST: u32 = 1000;
/// Most bytes in a title.
pub(super) const MAX_TITLE: usize = 256;
/// Longest test, as well as longest omission before it.
pub const MAX_TIME: Duration = Duration::from_secs(86_400);
/// Most bytes in the name of a congestion control: Linux's `TCP_CA_NAME_MAX`, without the zero at its end.
pub(super) const MAX_NAME: usize = 15;

/// One test. The client makes it, and the server is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Over what.
    pub transport: Transport,
    /// Who sends.
    pub direction: Direction,
    /// When it is over.
    pub limit: Limit,
    /// Time at its beginning that counts neither in the sums nor towards the limit. At most [`MAX_TIME`].
    pub omit: Duration,
    /// Data streams, at the same time. Range 1–[`MAX_STREAMS`].
    pub streams: u8,
    /// Bytes handed over at once, on both sides; of UDP the datagram. Range 1–[`MAX_LENGTH`], of UDP
    /// 16–65507; `None`: what iperf3 takes, 128 KiB or the path's segment.
    pub length: Option<u32>,
    /// How fast each stream is sent.
    pub rate: Rate,
    /// What its sockets are told.
    pub sockets: Sockets,
    /// How long latency is looked at before the test and after it; `None`: not at all. At most a minute.
    pub probes: Option<Duration>,
    /// Whether the server is asked for what it prints.
    pub output: Output,
    /// What begins every line of the client, and what the server is told.
    pub title: Option<String>,
}

/// How fast a stream is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Bits per second; 0: as fast as it goes.
    pub bps: u64,
    /// Blocks handed over at once before it is slowed down; 0 and 1 are the same. Range 0–1000.
    pub burst: u32,
}

/// What sockets are told; TPA has one socket for all streams, and takes none of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    /// Of TCP.
    pub nagle: Nagle,
    /// How data leave.
    pub copy: Copying,
    /// Buffer in bytes, of either direction; `None`: the system's.
    pub buffer: Option<u32>,
    /// Data of a full segment, in bytes; TCP. `None`: the system's.
    pub mss: Option<u16>,
    /// Type of service, or traffic class; TCP and UDP.
    pub tos: u8,
}

/// Whether TCP waits for more before it sends little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nagle {
    /// It does.
    #[default]
    On,
    /// It does not (`TCP_NODELAY`).
    Off,
}

/// How data leave over TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copying {
    /// The kernel copies what is written.
    #[default]
    Plain,
    /// It sends the pages of a file (sendfile(2)).
    Zero,
}

/// Whether the client shows what the server prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Its own lines only.
    #[default]
    Own,
    /// The server's too.
    Both,
}

/// What carries the data, and its parameters at the side that sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TPA over UDP.
    Tpa {
        /// Most segments in flight. Range 1–12.
        cwnd_max: u8,
    },
    /// TPA-wide over UDP, encrypted, with a conversation over TCP beside it.
    TpaWide,
    /// The kernel's TCP.
    Tcp {
        /// `None`: the sending system's default.
        congestion_control: Option<CongestionControl>,
    },
    /// Datagrams, with a conversation over TCP beside them.
    Udp,
}

/// The name of a congestion control of the kernel; not every kernel has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CongestionControl(String);

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The client.
    Forward,
    /// The server.
    Reverse,
    /// Both, at the same time, over streams of their own.
    Both,
}

/// When a test is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// After so long: above zero, at most [`MAX_TIME`].
    Time(Duration),
    /// When so many bytes, at least one, have arrived, over all streams.
    Bytes(u64),
}

impl Plan {
    /// As it is if nothing is said: 10 s, one stream, the client sends; UDP at 1 Mb/s.
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
            sockets: Sockets::default(),
            probes: None,
            output: Output::Own,
            title: None,
        }
    }

    /// Whether everything is in its range.
    ///
    /// # Errors
    /// [`Error::Plan`], with the first that is not.
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

    /// Streams of both directions.
    pub(super) fn all_streams(&self) -> usize {
        usize::from(self.streams) * if self.direction == Direction::Both { 2 } else { 1 }
    }
}

impl Transport {
    /// What it is called.
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
    /// A name that a kernel could have: 1 to 15 of a–z, 0–9, `_` and `-`.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=MAX_NAME).contains(&name.len());
        let taken = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_' || c == b'-';
        (fits && name.bytes().all(taken)).then(|| Self(name.to_owned()))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Whether this kernel lets this process use it.
    ///
    /// # Errors
    /// [`NoSuchCongestionControl`](crate::Error::NoSuchCongestionControl), with what it has, and
    /// [`ForbiddenCongestionControl`](crate::Error::ForbiddenCongestionControl), with what everybody may use.
    pub fn check_here(&self) -> Result<(), crate::Error> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None);
        let socket = socket.map_err(|e| crate::Error::system("making a socket", e))?;
        tcp::set_congestion_control(&socket, &self.0)
    }
}

impl fmt::Display for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text names no transport.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportProblem {
    /// There is none of that name.
    #[error(
        "there are `tpa`, `tpa-wide`, `udp`, `tcp` (this system's default congestion control) and `tcp:NAME`, NAME being one of: {offered}"
    )]
    Unknown {
        /// Congestion controls of this kernel, separated by spaces.
        offered: String,
    },
    /// The kernel has no such congestion control, or keeps it for root.
    #[error("{0}")]
    CongestionControl(String),
}

/// `tpa`, with the window that `hopline send` uses, `tpa-wide`, `tcp` or `tcp:NAME`. What it names is to be had here; who lets the
/// other side send may still be told that it is not to be had there.
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

/// As `hopline send` has it.
pub const DEFAULT_CWND_MAX: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_named_as_on_the_command_line() {
        assert_eq!("tpa".parse(), Ok(Transport::Tpa { cwnd_max: 6 }));
        assert_eq!("tpa-wide".parse(), Ok(Transport::TpaWide));
        assert_eq!("tcp".parse(), Ok(Transport::Tcp { congestion_control: None }));
        // Every Linux has Reno, and lets everyone use it.
        let reno = CongestionControl::new("reno");
        assert_eq!("tcp:reno".parse(), Ok(Transport::Tcp { congestion_control: reno }));
    }

    #[test]
    fn what_is_no_transport_is_answered_with_what_there_is() {
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
    fn a_plan_out_of_range_is_told_what_the_range_is() {
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
