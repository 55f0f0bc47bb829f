//! QUIC: `[quic]` and `flow.quic`.

use super::Key;
use crate::schema::Literal;
use hopline_transport::quic::Config;

const DEFAULT: Config = Config::DEFAULT;

/// `[quic]` and `flow.quic`; see docs/protocols/quic.md.
pub const QUIC: &[Key] = &[
    Key::word_or_user_defined(
        "congestion_control",
        &["cubic", "newreno", "bbr", "s2n-cubic", "s2n-bbr"],
        "congestion control algorithm, of quinn or s2n-quic; own: user-defined, see docs/protocols/quic.md",
    )
    .default(Literal::Word("cubic")),
    Key::integer(
        "max_datagram_bytes",
        1200,
        65_507,
        "largest UDP payload; the size of datagrams that are full",
    )
    .default(Literal::Integer(DEFAULT.max_datagram() as u64)),
    Key::integer(
        "receive_window_bytes",
        1 << 16,
        1 << 30,
        "received data kept for the application, and data kept until they are acknowledged",
    )
    .default(Literal::Integer(DEFAULT.receive_window())),
];
