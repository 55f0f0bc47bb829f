//! Kernel messages about queues: packets that wait for a verdict, and counters of disciplines.

use hopline_linux::qdisc::{self, Part};
use hopline_middlebox::nfqueue::parse::{Message, messages};

/// Shortest message of netlink, bytes.
const HEADER: usize = 16;
/// Request that the seeds answer: its sequence number, and the interface.
const SEQUENCE: u32 = 7;
const INTERFACE: u32 = 5;

/// Datagram of NFQUEUE. Packets lie within it without overlap, and there are no more messages than fit.
pub fn nfqueue(data: &[u8]) {
    let (mut found, mut held) = (0, 0);
    for message in messages(data) {
        found += 1;
        if let Ok(Message::Packet(queued)) = message {
            let (all, packet) = (data.as_ptr_range(), queued.packet.as_ptr_range());
            assert!(queued.packet.is_empty() || all.start <= packet.start && packet.end <= all.end);
            held += HEADER + queued.packet.len();
        }
    }
    assert!(held <= data.len());
    // The last message may have no end.
    assert!(found <= data.len() / HEADER + 1);
}

/// Datagram about disciplines. Counters are read from it, and an answer to another request has none.
pub fn qdisc(data: &[u8]) {
    let Part { stats: counted, .. } = qdisc::parse(data, SEQUENCE, INTERFACE);
    if let Some(counted) = counted {
        let said = [counted.packets, counted.bytes, counted.drops].map(u32::to_ne_bytes).concat();
        assert!(data.windows(said.len()).any(|part| part == said));
    }
    if !data.windows(4).any(|part| part == (SEQUENCE + 1).to_ne_bytes()) {
        assert_eq!(qdisc::parse(data, SEQUENCE + 1, INTERFACE).stats, None);
    }
}
