//! Middleboxes for TCP at the border between a wired network and a wireless hop.
//!
//! They receive packets, return verdicts, send packets of their own, and do no I/O. The simulator runs them
//! in its nodes, a daemon runs them on real interfaces. Their state of connections is soft: it is learned
//! from passing packets, it is bounded, and a restart in the middle of a transfer costs throughput, never
//! correctness.
//!
//! | middlebox | function | source |
//! |---|---|---|
//! | [`ack_pacing`] | spreads out bursts of ACKs | a question of Murray, Koziniec, Dixon 2009, §II-A.2 |
//! | [`announce`] | detects by TCP's handshake which hosts support TPA | Anastasi, Ancillotti, Conti, Passarella 2009, §6 |
//! | [`arq`] | repairs losses of a link by retransmission and FEC | link-level retransmission and FEC |
//! | [`dproxy`] | repairs losses of a link for TCP or any packets, from both ends | D-Proxy: Murray, Koziniec, Dixon 2009 |
//! | [`fast_retransmit`] | triggers fast retransmission after a handoff | Caceres, Iftode 1995 |
//! | [`handoff`] | routes packets for a mobile host to its current base station | Balakrishnan, Seshan, Katz 1995 |
//! | [`hop_window`] | keeps the queue of the last hop where a middlebox sees its drops | BBR: Cardwell and others 2016 |
//! | [`mtcp`] | makes the sender wait while the mobile host is unreachable | M-TCP: Brown, Singh 1997 |
//! | [`nack`] | requests data of a mobile host that the last hop has lost | Balakrishnan, Seshan, Katz 1995, §3 |
//! | [`split`] | terminates the connection, and continues it over another transport | I-TCP: Bakre, Badrinath 1995 |
//! | [`snoop`] | caches packets, retransmits lost ones locally, suppresses duplicate ACKs | Balakrishnan, Seshan, Katz 1995 |

pub mod ack_pacing;
pub mod announce;
pub mod arq;
pub mod dproxy;
pub mod driver;
pub mod fast_retransmit;
pub mod handoff;
pub mod hop_window;
pub mod mtcp;
pub mod nack;
mod packet;
mod packet_io;
mod pep;
mod rtt;
mod session;
pub mod snoop;
pub mod split;
mod table;
pub mod tunnel;
mod window;

pub use driver::Driver;
pub use packet::{AckContent, BareAck, Connection, Nack, Packet, Side, Verdict};
pub use packet_io::{Arrival, InjectResult, PacketIo, PacketVerdict, Postpone};
pub use pep::{LastHopProgress, Pep, QueuePosition, Transmit};
pub use session::PeerStatus;
pub use table::TableLimits;
