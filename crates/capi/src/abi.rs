//! What C sees beside functions.

#![allow(non_camel_case_types, reason = "the names of C")]

use libc::{c_char, c_int, c_short, c_uint};

/// There is something to receive: data, the end of the stream, an error, or a connection to accept.
pub const TPA_POLLIN: c_int = 1;
/// There is room for data to send, or the connection that was begun is open.
pub const TPA_POLLOUT: c_int = 4;
/// The connection could not be opened: TPA_ERROR says why. Reported whether or not it was asked for.
pub const TPA_POLLERR: c_int = 8;
/// The connection is over, or never was. Reported whether or not it was asked for.
pub const TPA_POLLHUP: c_int = 16;
/// No open handle. Reported whether or not it was asked for.
pub const TPA_POLLNVAL: c_int = 32;

/// Receive no more: what comes is thrown away.
pub const TPA_SHUT_RD: c_int = 0;
/// Send no more: the peer receives to the end of what was sent.
pub const TPA_SHUT_WR: c_int = 1;
/// Both.
pub const TPA_SHUT_RDWR: c_int = 2;

/// Length of a fingerprint as text, with the final NUL.
pub const TPA_FINGERPRINT_LEN: usize = 40;

/// What tpa_setsockopt sets. Numbers and durations are int; durations are in milliseconds, and 0 is as long as it takes. Texts and paths are
/// as long as is said; a NUL at the end may be counted or not.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tpa_option {
    /// A key that both ends share and nobody else has: 32 bytes from a generator of random numbers. It takes the place of a key of our
    /// own, and the other way round. Cannot be read.
    TPA_PSK = 1,
    /// The same, from a file with 64 hexadecimal digits, which nobody else may read. Cannot be read.
    TPA_PSK_FILE = 2,
    /// Our own private key, as `hopline key new FILE` makes it. Without any key it is that of the user,
    /// $XDG_CONFIG_HOME/hopline/key or ~/.config/hopline/key. Cannot be read.
    TPA_KEY_FILE = 3,
    /// A file of known peers: in each line a name and a public key. Who listens lets in only these, and anyone if there is no such file;
    /// who connects knows the peer by it. Without it who connects looks into the file known_peers beside the user's key.
    TPA_KNOWN_PEERS = 4,
    /// What the peer of tpa_connect is called in the file of known peers. Without it ADDRESS:PORT.
    TPA_PEER_NAME = 5,
    /// Connect if the peer's key has this fingerprint.
    TPA_TRUST = 6,
    /// Not 0: a peer that is not known is believed, and added to the file of known peers. Default 0.
    TPA_TRUST_ON_FIRST_USE = 7,
    /// Not 0: nothing waits, and what would have to fails with EAGAIN, tpa_connect with EINPROGRESS. Default 0.
    TPA_NONBLOCK = 8,
    /// Longest wait of tpa_connect, ms. Default 0.
    TPA_CONNECT_TIMEOUT = 9,
    /// Longest wait of tpa_recv and tpa_accept, which then fail with EAGAIN, ms. Default 0.
    TPA_RECV_TIMEOUT = 10,
    /// Longest wait of tpa_send for room, ms. Then it fails with EAGAIN, or returns the number of bytes taken. Default 0.
    TPA_SEND_TIMEOUT = 11,
    /// Longest wait of tpa_close until the peer has everything, ms. Default 0.
    TPA_CLOSE_TIMEOUT = 12,
    /// Silence of the peer after which the connection is given up, ms; set before tpa_connect or tpa_listen. Over TCP a window that
    /// stays closed is no silence, and 0 turns keep-alive off. Default 120000.
    TPA_SILENCE = 13,
    /// Only for tpa_getsockopt: the errno of a tpa_connect that failed after EINPROGRESS, which is then forgotten; EINPROGRESS while it
    /// goes on; 0 otherwise. An int.
    TPA_ERROR = 14,
    /// Only for tpa_getsockopt: the fingerprint of our key, a text of TPA_FINGERPRINT_LEN bytes with the final NUL.
    TPA_FINGERPRINT = 15,
    /// The protocol, an enum tpa_protocol; set before anything else but options. Default TPA_PROTOCOL_WIDE. Reads as the protocol of the
    /// connection once there is one.
    TPA_PROTOCOL = 16,
    /// Largest window of TPA as published, segments: 1 to 12; the paper has 2 or 3. Default 3.
    TPA_CWND_MAX = 17,
    /// Not 0: over TPA as published and TCP what tpa_send takes leaves at once. Default 0: TPA waits until a block is full, for 100 ms at
    /// most, and TCP until the peer has what was sent before. No effect over TPA-wide, which does not wait.
    TPA_NODELAY = 18,
}

/// Protocol of a socket.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tpa_protocol {
    /// TPA-wide: encrypted, with keys.
    TPA_PROTOCOL_WIDE = 0,
    /// TPA as published, over UDP: without keys, not encrypted.
    TPA_PROTOCOL_TPA = 1,
    /// TPA as published if the peer answers it, else TCP; neither is encrypted. A listener has both, at ports of the same number.
    TPA_PROTOCOL_TPA_OR_TCP = 2,
    /// TCP. Cannot be set: the protocol of an open connection.
    TPA_PROTOCOL_TCP = 3,
}

/// How far a connection is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tpa_state {
    /// It is being opened.
    TPA_STATE_OPENING = 0,
    /// It is open; the peer may have ended its direction.
    TPA_STATE_OPEN = 1,
    /// We have ended our direction.
    TPA_STATE_CLOSING = 2,
    /// It is over.
    TPA_STATE_CLOSED = 3,
}

/// A handle that tpa_poll looks at.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tpa_pollfd {
    /// Which; a negative one is passed over.
    pub handle: c_int,
    /// What is waited for: TPA_POLLIN, TPA_POLLOUT, both, or 0.
    pub events: c_short,
    /// What was found.
    pub revents: c_short,
}

/// How a connection stands. Later versions add fields at the end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tpa_info {
    /// Before the call: sizeof(struct tpa_info), at least 16. After it: how many bytes were filled in.
    pub size: usize,
    /// How far it is: an enum tpa_state.
    pub state: c_uint,
    /// Data of a full packet, bytes.
    pub mss: c_uint,
    /// Mean round-trip time, microseconds; 0 before the first sample.
    pub srtt_us: u64,
    /// The rate at which packets leave, bits per second with headers; 0 before anything is known of the path.
    pub rate_bps: u64,
    /// Bytes that may be in flight.
    pub window: u64,
    /// Bytes in flight, headers included.
    pub in_flight: u64,
    /// Bytes sent that the peer has not acknowledged, those included that have not left yet.
    pub unacknowledged: u64,
    /// Bytes of data that left, retransmissions included.
    pub bytes_sent: u64,
    /// Bytes of data that the peer acknowledged.
    pub bytes_acked: u64,
    /// Distinct bytes that came, in order, received by the program or not.
    pub bytes_received: u64,
    /// Packets with data that left, retransmissions included.
    pub packets_sent: u64,
    /// Packets with data that had left before.
    pub retransmissions: u64,
    /// Packets that came.
    pub packets_received: u64,
    /// Packets taken for lost.
    pub lost: u64,
    /// Of these, those that arrived after all.
    pub late: u64,
    /// Times the path was silent for a time-out.
    pub timeouts: u64,
    /// Times the rate was reduced.
    pub reductions: u64,
    /// Time for which the path was silent, or known to be gone, microseconds.
    pub frozen_us: u64,
    /// Datagrams that could not be opened: forged, damaged, repeated.
    pub rejected: u64,
    /// The fingerprint of the peer's key, which it has proved to have; empty with a shared key, and where there are no keys.
    pub peer_fingerprint: [c_char; TPA_FINGERPRINT_LEN],
    /// The protocol: an enum tpa_protocol. Of TCP only state, mss, srtt_us, window and retransmissions are filled in; of TPA as
    /// published all that it knows.
    pub protocol: c_uint,
    /// 0.
    pub reserved: c_uint,
}
