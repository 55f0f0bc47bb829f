//! What the sides say to each other, as iperf3 3.12 does: state bytes, and JSON (`parameters.rs`, `results.rs`). `docs/bench.md` has the order.

use serde::{Deserialize, Serialize};

/// Bytes of a cookie: 36 characters of the alphabet and a zero.
pub(super) const COOKIE: usize = 37;
/// Most bytes of JSON from a client.
pub(super) const MAX_FROM_CLIENT: usize = 256 << 10;
/// Most bytes of JSON from a server, what it printed included.
pub(super) const MAX_FROM_SERVER: usize = 16 << 20;
/// Both sides write this at the beginning of a stream over UDP; before 3.11 they wrote others.
pub(super) const UDP_CONNECT: u32 = 0x3637_3839;
pub(super) const UDP_CONNECT_BEFORE: u32 = 123_456_789;
pub(super) const UDP_REPLY: u32 = 0x3938_3736;
pub(super) const UDP_REPLY_BEFORE: u32 = 987_654_321;

/// What makes data streams part of a test: nobody else can guess it.
pub(super) type Cookie = [u8; COOKIE];

/// Where a test stands: one byte on the control connection.
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
    /// Between two ends of hopline, JSON follows: [`Extra`].
    Hopline = 100,
    AccessDenied = -1,
    /// Two numbers of four bytes follow: iperf3's of the error, and the system's.
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

/// What a server tells a client that speaks hopline's additions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Extra {
    /// UDP port at which datagrams with the cookie come back.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) echo_port: Option<u16>,
    /// Its key for this test over TPA-wide.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) key: Option<[u8; 32]>,
    /// Why it gives up, for people.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) refused: Option<String>,
}
