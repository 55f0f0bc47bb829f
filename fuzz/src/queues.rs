//! What the kernel says of queues: packets that wait for a verdict, and what disciplines have counted.

use hopline_net::nfqueue::parse::{Message, messages};
use hopline_net::qdisc::{self, Part};

/// Shortest message of netlink, in bytes.
const HEADER: usize = 16;
/// What is asked for, as the seeds have it: the request's number, and the interface.
const SEQUENCE: u32 = 7;
const INTERFACE: u32 = 5;

/// A datagram of NFQUEUE: packets lie within it and have room beside each other, and there are no more messages than it has room for.
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
    // The last one may have no end.
    assert!(found <= data.len() / HEADER + 1);
}

/// A datagram about disciplines: what was counted stands in it, and an answer to something else says nothing.
pub fn qdisc(data: &[u8]) {
    let Part { counted, .. } = qdisc::parse(data, SEQUENCE, INTERFACE);
    if let Some(counted) = counted {
        let said = [counted.packets, counted.bytes, counted.drops].map(u32::to_ne_bytes).concat();
        assert!(data.windows(said.len()).any(|part| part == said));
    }
    if !data.windows(4).any(|part| part == (SEQUENCE + 1).to_ne_bytes()) {
        assert_eq!(qdisc::parse(data, SEQUENCE + 1, INTERFACE).counted, None);
    }
}
