//! Constants and structures of the C interface.

#![allow(non_camel_case_types, reason = "the names of C")]

use libc::{c_char, c_int, c_short, c_uint};

/// Data, the end of the stream, an error, or a connection to accept can be received.
pub const TPA_POLLIN: c_int = 1;
/// The send buffer has room, or the connection that was begun is open.
pub const TPA_POLLOUT: c_int = 4;
/// The connection could not be opened: TPA_ERROR has the error. Reported whether or not it was requested.
pub const TPA_POLLERR: c_int = 8;
/// The connection has ended, or never existed. Reported whether or not it was requested.
pub const TPA_POLLHUP: c_int = 16;
/// The handle is not open. Reported whether or not it was requested.
pub const TPA_POLLNVAL: c_int = 32;

/// Ends receiving: data that arrive later are discarded.
pub const TPA_SHUT_RD: c_int = 0;
/// Ends sending: the peer receives all data sent before.
pub const TPA_SHUT_WR: c_int = 1;
/// Ends both directions.
pub const TPA_SHUT_RDWR: c_int = 2;

/// Length of a fingerprint as text, with the final NUL, bytes.
pub const TPA_FINGERPRINT_LEN: usize = 40;

/// Options of tpa_setsockopt. Numbers and durations are int. Durations are in milliseconds; 0 means no limit. The length of
/// a text or path is the `len` of the call; it may include a final NUL.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tpa_option {
    /// Secret key that only the two ends share: 32 bytes from a random number generator. It replaces an own private key, and
    /// an own private key replaces it. Cannot be read.
    TPA_PSK = 1,
    /// Secret key that the two ends share, from a file of 64 hexadecimal digits. Only the owner may have access to the file.
    /// Cannot be read.
    TPA_PSK_FILE = 2,
    /// Own private key, as made by `hopline key new FILE`. If no key is set, the user's key is used, from
    /// $XDG_CONFIG_HOME/hopline/key or ~/.config/hopline/key. Cannot be read.
    TPA_KEY_FILE = 3,
    /// File of known peers, with a name and a public key in each line. A listener accepts only these peers; without such a
    /// file it accepts any peer. tpa_connect takes the expected key of the peer from it. If it is not set, tpa_connect reads
    /// the file known_peers beside the user's key.
    TPA_KNOWN_PEERS = 4,
    /// Name of the peer of tpa_connect in the file of known peers. Default: ADDRESS:PORT.
    TPA_PEER_NAME = 5,
    /// Fingerprint that the key of the peer must have; for tpa_connect.
    TPA_TRUST = 6,
    /// Not 0: tpa_connect accepts an unknown peer and adds it to the file of known peers. Default 0.
    TPA_TRUST_ON_FIRST_USE = 7,
    /// Not 0: calls do not wait. They fail with EAGAIN instead, tpa_connect with EINPROGRESS. Default 0.
    TPA_NONBLOCK = 8,
    /// Longest wait of tpa_connect, ms. Default 0.
    TPA_CONNECT_TIMEOUT = 9,
    /// Longest wait of tpa_recv and tpa_accept, ms. Afterwards they fail with EAGAIN. Default 0.
    TPA_RECV_TIMEOUT = 10,
    /// Longest wait of tpa_send for room, ms. Afterwards it fails with EAGAIN, or returns the number of bytes accepted.
    /// Default 0.
    TPA_SEND_TIMEOUT = 11,
    /// Longest wait of tpa_close until the peer has received everything, ms. Default 0.
    TPA_CLOSE_TIMEOUT = 12,
    /// Silence of the peer after which the connection is aborted, ms. Set before tpa_connect or tpa_listen. Over TCP a zero
    /// window does not count as silence, and 0 turns keep-alive off. Default 120000.
    TPA_SILENCE = 13,
    /// Only for tpa_getsockopt, an int: EINPROGRESS while the connection is being opened. The errno of a tpa_connect that
    /// failed after EINPROGRESS; reading clears it. 0 otherwise.
    TPA_ERROR = 14,
    /// Only for tpa_getsockopt: fingerprint of the own key, a text of TPA_FINGERPRINT_LEN bytes with the final NUL.
    TPA_FINGERPRINT = 15,
    /// Protocol, an enum tpa_protocol. Set before any call but options. Default TPA_PROTOCOL_WIDE. Reads as the protocol of
    /// the connection once there is one.
    TPA_PROTOCOL = 16,
    /// Largest window of TPA as published, segments: 1 to 12. The paper uses 2 or 3. Default 3.
    TPA_CWND_MAX = 17,
    /// Not 0: TPA as published and TCP send the data of tpa_send at once. Default 0: TPA waits for a full block, for 100 ms
    /// at most; TCP waits until the peer has acknowledged earlier data (Nagle's algorithm, RFC 896). No effect over
    /// TPA-wide, which does not wait.
    TPA_NODELAY = 18,
}

/// Protocol of a socket.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tpa_protocol {
    /// TPA-wide: encrypted and authenticated with keys.
    TPA_PROTOCOL_WIDE = 0,
    /// TPA as published, over UDP: no keys, not encrypted.
    TPA_PROTOCOL_TPA = 1,
    /// TPA as published if the peer answers it, else TCP. Neither is encrypted. A listener has both, at ports of the same
    /// number.
    TPA_PROTOCOL_TPA_OR_TCP = 2,
    /// TCP. Cannot be set: protocol of an open connection.
    TPA_PROTOCOL_TCP = 3,
}

/// State of a connection.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tpa_state {
    /// The connection is being opened.
    TPA_STATE_OPENING = 0,
    /// The connection is open. The peer may have ended its direction.
    TPA_STATE_OPEN = 1,
    /// This end has ended its direction.
    TPA_STATE_CLOSING = 2,
    /// The connection has ended.
    TPA_STATE_CLOSED = 3,
}

/// Handle that tpa_poll waits for.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tpa_pollfd {
    /// Handle of a socket; negative handles are skipped.
    pub handle: c_int,
    /// Requested events: TPA_POLLIN, TPA_POLLOUT, both, or 0.
    pub events: c_short,
    /// Events that occurred.
    pub revents: c_short,
}

/// State and counters of a connection. Later versions add fields at the end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tpa_info {
    /// Before the call: sizeof(struct tpa_info), at least 16. After it: number of bytes written.
    pub size: usize,
    /// State of the connection: an enum tpa_state.
    pub state: c_uint,
    /// Data of a full packet, bytes.
    pub mss: c_uint,
    /// Smoothed round-trip time, microseconds; 0 before the first sample.
    pub srtt_us: u64,
    /// Pacing rate, bits per second with headers; 0 before the first estimate.
    pub rate_bps: u64,
    /// Bytes that may be in flight.
    pub window: u64,
    /// Bytes in flight, headers included.
    pub in_flight: u64,
    /// Bytes sent that the peer has not acknowledged, including those that have not left yet.
    pub unacknowledged: u64,
    /// Bytes of data transmitted, retransmissions included.
    pub bytes_sent: u64,
    /// Bytes of data that the peer acknowledged.
    pub bytes_acked: u64,
    /// Distinct bytes received in order, read by the program or not.
    pub bytes_received: u64,
    /// Packets with data transmitted, retransmissions included.
    pub packets_sent: u64,
    /// Retransmitted packets with data.
    pub retransmissions: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Packets declared lost that arrived after all (spurious losses).
    pub late: u64,
    /// Number of retransmission timeouts.
    pub timeouts: u64,
    /// Number of rate reductions.
    pub reductions: u64,
    /// Time for which the path was silent or known to be lost, microseconds.
    pub frozen_us: u64,
    /// Datagrams that failed authentication: forged, damaged or replayed.
    pub rejected: u64,
    /// Fingerprint of the authenticated key of the peer. Empty with a shared key, and for protocols without keys.
    pub peer_fingerprint: [c_char; TPA_FINGERPRINT_LEN],
    /// Protocol of the connection: an enum tpa_protocol. TCP fills in only state, mss, srtt_us, window and retransmissions.
    /// TPA as published fills in those that it has.
    pub protocol: c_uint,
    /// Reserved; 0.
    pub reserved: c_uint,
}
