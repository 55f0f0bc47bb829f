//! What is measured.

use super::error::Error;
use crate::tcp;
use socket2::{Domain, Socket, Type};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Most data streams of one test.
pub const MAX_STREAMS: u8 = 128;
/// Most bytes handed over at once.
pub const MAX_LENGTH: u32 = 1 << 20;
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
    /// How long at its beginning nothing counts. At most [`MAX_TIME`]; zero where the limit is in bytes.
    pub omit: Duration,
    /// Data streams, at the same time. Range 1–[`MAX_STREAMS`].
    pub streams: u8,
    /// Bytes handed over at once, on both sides. Range 1–[`MAX_LENGTH`].
    pub length: u32,
}

/// What carries the data, and its parameters at the side that sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TPA over UDP.
    Tpa {
        /// Most segments in flight. Range 1–12.
        cwnd_max: u8,
    },
    /// The kernel's TCP.
    Tcp {
        /// `None`: the sending system's default.
        congestion_control: Option<CongestionControl>,
    },
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
    /// Whether everything is in its range.
    ///
    /// # Errors
    /// [`Error::Plan`], with the first that is not.
    pub fn validate(&self) -> Result<(), Error> {
        let check = |ok, what| if ok { Ok(()) } else { Err(Error::Plan(what)) };
        check((1..=MAX_STREAMS).contains(&self.streams), "1 to 128 streams")?;
        check((1..=MAX_LENGTH).contains(&self.length), "a length of 1 to 1048576 bytes")?;
        match self.limit {
            Limit::Time(time) => {
                check(!time.is_zero() && time <= MAX_TIME, "a time above zero, at most a day")?;
                check(self.omit <= MAX_TIME, "at most a day omitted")?;
            }
            Limit::Bytes(bytes) => {
                check(bytes > 0, "at least one byte")?;
                check(self.omit.is_zero(), "nothing omitted where bytes are the limit")?;
            }
        }
        match self.transport {
            Transport::Tpa { cwnd_max } => check((1..=12).contains(&cwnd_max), "a window of 1 to 12"),
            Transport::Tcp { .. } => Ok(()),
        }
    }
}

impl Transport {
    /// What it is called.
    #[must_use]
    pub const fn protocol(&self) -> &'static str {
        match self {
            Self::Tpa { .. } => "TPA",
            Self::Tcp { .. } => "TCP",
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
    /// [`NoSuchCongestionControl`](crate::Error::NoSuchCongestionControl), with what it has.
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
        "there are `tpa`, `tcp` (this system's default congestion control) and `tcp:NAME`, NAME being one of: {offered}"
    )]
    Unknown {
        /// Congestion controls of this kernel, separated by spaces.
        offered: String,
    },
    /// The kernel has no such congestion control, or keeps it for root.
    #[error("{0}")]
    CongestionControl(String),
}

/// `tpa`, with the window that `hopline send` uses, `tcp` or `tcp:NAME`. What it names is to be had here; who lets the
/// other side send may still be told that it is not to be had there.
impl FromStr for Transport {
    type Err = TransportProblem;

    fn from_str(text: &str) -> Result<Self, TransportProblem> {
        let unknown = || TransportProblem::Unknown { offered: tcp::offered_congestion_controls() };
        match text.split_once(':') {
            None if text == "tpa" => Ok(Self::Tpa { cwnd_max: DEFAULT_CWND_MAX }),
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
        assert_eq!("tcp".parse(), Ok(Transport::Tcp { congestion_control: None }));
        // Every Linux has Reno, and lets everyone use it.
        let reno = CongestionControl::new("reno");
        assert_eq!("tcp:reno".parse(), Ok(Transport::Tcp { congestion_control: reno }));
    }

    #[test]
    fn what_is_no_transport_is_answered_with_what_there_is() {
        for wrong in ["", "udp", "TPA", "tpa:3", "tcp:", "tcp:Reno", "tcp:reno ", "tcp:a-name-of-16-chars"] {
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
            length: MAX_LENGTH,
        };
        good.validate().unwrap();
        let wrong: [fn(&mut Plan); 9] = [
            |p| p.streams = 0,
            |p| p.streams = 129,
            |p| p.length = 0,
            |p| p.length = MAX_LENGTH + 1,
            |p| p.limit = Limit::Bytes(0),
            |p| p.limit = Limit::Time(Duration::ZERO),
            |p| p.limit = Limit::Time(MAX_TIME + Duration::from_nanos(1)),
            |p| p.omit = Duration::from_secs(1),
            |p| p.transport = Transport::Tpa { cwnd_max: 13 },
        ];
        for (i, change) in wrong.iter().enumerate() {
            let mut plan = good.clone();
            change(&mut plan);
            assert!(matches!(plan.validate(), Err(Error::Plan(_))), "{i}");
        }
    }
}
