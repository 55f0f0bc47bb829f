//! Reasons for which a side gives up a test, by iperf3's numbers.

use std::fmt;

/// Number of an error on the control connection, as iperf3 3.12 assigns them (`iperf_api.h`, `IE…`), as far as hopline sends them or
/// has words for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Code {
    /// Duration (`IEDURATION`).
    Duration = 5,
    /// Number of parallel streams (`IENUMSTREAMS`).
    Streams = 6,
    /// Bytes handed over at once, TCP (`IEBLOCKSIZE`).
    BlockSize = 7,
    /// Socket buffer (`IEBUFSIZE`).
    BufferSize = 8,
    /// Maximum segment size (`IEMSS`).
    Mss = 10,
    /// Duration of the omission (`IEOMIT`).
    Omission = 12,
    /// Blocks of a burst (`IEBURST`).
    Burst = 15,
    /// SCTP (`IENOSCTP`).
    Sctp = 18,
    /// Length of a datagram (`IEUDPBLOCKSIZE`).
    DatagramSize = 20,
    /// Type of service (`IEBADTOS`).
    Tos = 21,
    /// Total bit rate (`IETOTALRATE`).
    TotalRate = 27,
    /// Unknown control message (`IEMESSAGE`).
    Message = 110,
    /// Parameters of the test (`IERECVPARAMS`).
    Parameters = 114,
    /// Results of the test (`IERECVRESULTS`).
    Results = 117,
    /// `TCP_NODELAY` (`IESETNODELAY`).
    SetNoDelay = 122,
    /// `TCP_MAXSEG` (`IESETMSS`).
    SetMss = 123,
    /// `SO_SNDBUF`, `SO_RCVBUF` (`IESETBUF`).
    SetBuffer = 124,
    /// `IP_TOS` (`IESETTOS`).
    SetTos = 125,
    /// `TCP_CONGESTION` (`IESETCONGESTION`).
    CongestionControl = 134,
    /// Authorization (`IEAUTHTEST`).
    Authorization = 142,
    /// Silence during the test (`IENOMSG`).
    Silence = 144,
    /// Data stream that was not made (`IECREATESTREAM`).
    CreateStream = 200,
    /// Data stream that did not come (`IESTREAMACCEPT`).
    AcceptStream = 204,
    /// Data stream that could not be written (`IESTREAMWRITE`).
    WriteStream = 205,
    /// Data stream that could not be read (`IESTREAMREAD`).
    ReadStream = 206,
}

impl Code {
    const ALL: [Self; 25] = [
        Self::Duration,
        Self::Streams,
        Self::BlockSize,
        Self::BufferSize,
        Self::Mss,
        Self::Omission,
        Self::Burst,
        Self::Sctp,
        Self::DatagramSize,
        Self::Tos,
        Self::TotalRate,
        Self::Message,
        Self::Parameters,
        Self::Results,
        Self::SetNoDelay,
        Self::SetMss,
        Self::SetBuffer,
        Self::SetTos,
        Self::CongestionControl,
        Self::Authorization,
        Self::Silence,
        Self::CreateStream,
        Self::AcceptStream,
        Self::WriteStream,
        Self::ReadStream,
    ];

    const fn description(self) -> &'static str {
        match self {
            Self::Duration => "it does not run tests of this duration",
            Self::Streams => "it does not take so many parallel streams",
            Self::BlockSize => "it does not take this block size",
            Self::BufferSize => "it does not take this socket buffer size",
            Self::Mss => "it does not take this maximum segment size",
            Self::Omission => "it does not take this omission",
            Self::Burst => "it does not take this burst",
            Self::Sctp => "it has no SCTP",
            Self::DatagramSize => "it does not take datagrams of this length",
            Self::Tos => "it does not take this type of service",
            Self::TotalRate => "the total bit rate is above its limit",
            Self::Message => "it did not understand a message",
            Self::Parameters => "it does not take the parameters of the test",
            Self::Results => "it did not understand the results",
            Self::SetNoDelay => "it cannot set TCP_NODELAY",
            Self::SetMss => "it cannot set the maximum segment size",
            Self::SetBuffer => "it cannot set the socket buffer size",
            Self::SetTos => "it cannot set the type of service",
            Self::CongestionControl => "it cannot set the congestion control algorithm",
            Self::Authorization => "it wants a user name and a password (iperf3's --username)",
            Self::Silence => "it received nothing for too long",
            Self::CreateStream => "it cannot make a data stream",
            Self::AcceptStream => "a data stream did not come",
            Self::WriteStream | Self::ReadStream => "a data stream broke",
        }
    }
}

/// Error that the peer sent: iperf3's number, and `errno` of its system, zero for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerError {
    /// Number of the error.
    pub number: u32,
    /// `errno`.
    pub errno: u32,
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Code::ALL.into_iter().find(|&code| code as u32 == self.number) {
            Some(code) => f.write_str(code.description())?,
            None => write!(f, "iperf3's error {}", self.number)?,
        }
        match i32::try_from(self.errno) {
            Ok(errno) if errno > 0 => write!(f, ": {}", std::io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }
}

/// Bound that a [`Plan`](super::Plan) breaks. Its text continues "a test has".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Streams.
    Streams,
    /// Bytes handed over at once.
    Length,
    /// Length of a datagram.
    Datagram,
    /// Blocks of a burst.
    Burst,
    /// Time for latency.
    Probes,
    /// Title.
    Title,
    /// Duration.
    Time,
    /// Omission.
    Omission,
    /// Bytes to transfer.
    Bytes,
    /// TPA's window.
    Window,
    /// Address of the server.
    Peer,
}

impl Bound {
    pub(super) const fn code(self) -> Code {
        match self {
            Self::Streams => Code::Streams,
            Self::Length => Code::BlockSize,
            Self::Datagram => Code::DatagramSize,
            Self::Burst => Code::Burst,
            Self::Time => Code::Duration,
            Self::Omission => Code::Omission,
            Self::Probes | Self::Title | Self::Bytes | Self::Window | Self::Peer => Code::Parameters,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Streams => "1 to 128 streams",
            Self::Length => "a length of 1 to 1048576 bytes",
            Self::Datagram => "datagrams of 16 to 65507 bytes",
            Self::Burst => "a burst of at most 1000 blocks",
            Self::Probes => "at most a minute of latency",
            Self::Title => "a title of at most 256 bytes",
            Self::Time => "a time above zero, at most a day",
            Self::Omission => "at most a day omitted",
            Self::Bytes => "at least one byte",
            Self::Window => "a window of 1 to 12",
            Self::Peer => "a peer",
        })
    }
}

/// Refusal of the parameters of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Error number for an iperf3 client.
    pub code: Code,
    /// Text for a hopline client and for the user of the server.
    pub message: String,
}

impl Refusal {
    pub(super) fn new(code: Code, words: impl Into<String>) -> Self {
        Self { code, message: words.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_error_has_a_description_and_the_errno_of_its_system() {
        for (number, errno, words) in [
            (
                134,
                2,
                "it cannot set the congestion control algorithm: No such file or directory (os error 2)",
            ),
            (114, 0, "it does not take the parameters of the test"),
            (133, 0, "iperf3's error 133"),
            (6, u32::MAX, "it does not take so many parallel streams"),
        ] {
            assert_eq!(PeerError { number, errno }.to_string(), words);
        }
    }
}
