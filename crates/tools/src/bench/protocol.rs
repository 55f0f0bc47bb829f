//! Control messages of iperf3 3.12: state bytes, and JSON (`parameters.rs`, `results.rs`). `docs/bench.md` has their
//! order.

use serde::{Deserialize, Serialize};

/// Bytes of a cookie: 36 characters of the alphabet and a zero.
pub(super) const COOKIE_LEN: usize = 37;
/// Maximum bytes of JSON from a client.
pub(super) const MAX_FROM_CLIENT: usize = 256 << 10;
/// Maximum bytes of JSON from a server, including its output.
pub(super) const MAX_FROM_SERVER: usize = 16 << 20;
/// First word of a stream over UDP, in both directions. Versions before 3.11 used other words.
pub(super) const UDP_CONNECT: u32 = 0x3637_3839;
pub(super) const UDP_CONNECT_LEGACY: u32 = 123_456_789;
pub(super) const UDP_REPLY: u32 = 0x3938_3736;
pub(super) const UDP_REPLY_LEGACY: u32 = 987_654_321;

/// Random token that makes a data stream part of a test. Third parties cannot guess it.
pub(super) type Cookie = [u8; COOKIE_LEN];

/// State of a test: one byte on the control connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub(super) enum State {
    TestStart = 1,
    TestRunning = 2,
    TestEnd = 4,
    ParamExchange = 9,
    CreateStreams = 10,
    ServerTerminate = 11,
    ClientTerminate = 12,
    ExchangeResults = 13,
    DisplayResults = 14,
    IperfDone = 16,
    /// Between two hopline peers, JSON follows: [`Extra`].
    Hopline = 100,
    AccessDenied = -1,
    /// Two numbers of four bytes follow: iperf3's error number and the `errno`.
    ServerError = -2,
}

impl State {
    pub(super) fn of(byte: u8) -> Option<Self> {
        use State::*;
        let all = [
            TestStart,
            TestRunning,
            TestEnd,
            ParamExchange,
            CreateStreams,
            ServerTerminate,
            ClientTerminate,
            ExchangeResults,
            DisplayResults,
            IperfDone,
            Hopline,
            AccessDenied,
            ServerError,
        ];
        all.into_iter().find(|&state| state as i8 == byte as i8)
    }
}

/// Additional message of a hopline server to a hopline client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Extra {
    /// UDP port that echoes datagrams with the cookie.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) echo_port: Option<u16>,
    /// Public key of the server for this test over TPA-wide.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) key: Option<[u8; 32]>,
    /// Reason for giving up, as text for the user.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) refused: Option<String>,
}
