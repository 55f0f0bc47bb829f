//! Machines in the middle of the path of TCP, at the border between a wired network and a wireless hop.
//!
//! They see packets and say what becomes of each, send packets of their own, and know nothing of sockets: the simulator seats them in its
//! nodes, a daemon behind real interfaces. What they know of connections is soft state: it comes from the packets that pass, it is bounded,
//! and a machine that is restarted in the middle of a transfer costs throughput, never correctness.
//!
//! | machine | what it does | source |
//! |---|---|---|
//! | [`ack_pacing`] | spreads bursts of ACKs out | a question of Murray, Koziniec, Dixon 2009, §II-A.2 |
//! | [`announce`] | finds out by TCP's handshake which hosts speak TPA | Anastasi, Ancillotti, Conti, Passarella 2009, §6 |
//! | [`arq`] | has a link repair its own losses | link-level retransmission and FEC |
//! | [`dproxy`] | has both ends of a lossy link repair what it loses of TCP, or of anything | D-Proxy: Murray, Koziniec, Dixon 2009 |
//! | [`fast_retransmit`] | has a mobile host ask again at once for what a handoff lost | Caceres, Iftode 1995 |
//! | [`handoff`] | brings what comes for a host that moves to the station where it is | Balakrishnan, Seshan, Katz 1995 |
//! | [`hop_window`] | has packets wait before the last hop, where a machine sees it, and not in a queue that tells nobody | BBR: Cardwell and others 2016 |
//! | [`mtcp`] | makes the sender wait while the mobile host cannot be reached | M-TCP: Brown, Singh 1997 |
//! | [`nack`] | has a mobile host send again at once what it has sent and the last hop has lost | Balakrishnan, Seshan, Katz 1995, §3 |
//! | [`split`] | ends the connection at the border and begins another one beyond, over whatever transport suits the last hop | I-TCP: Bakre, Badrinath 1995 |
//! | [`snoop`] | keeps what goes to the mobile host, sends again what got lost on the last hop, hides duplicate ACKs | Balakrishnan, Seshan, Katz 1995 |

pub mod ack_pacing;
pub mod announce;
pub mod arq;
pub mod dproxy;
pub mod driver;
pub mod fast_retransmit;
mod filter;
pub mod handoff;
pub mod hop_window;
pub mod mtcp;
pub mod nack;
mod packet;
mod packet_io;
mod rtt;
mod session;
pub mod snoop;
pub mod split;
mod table;
pub mod tunnel;
mod window;

pub use driver::Driver;
pub use filter::{Filter, OnTheWay, Transmit, Turn};
pub use packet::{BareAck, Connection, Nack, Packet, Says, Side, Verdict};
pub use packet_io::{Arrival, Fate, Injected, PacketIo, Postpones};
pub use session::Peer;
pub use table::Bounds;
