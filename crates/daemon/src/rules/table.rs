//! Table of nftables that leads connections to listeners.

use super::diverted::{DiversionMark, DivertedConnections, UnforwardedPackets};
use super::family::Family;
use super::held_syns;
use std::fmt::Write;

/// Returns the name of the table of a daemon.
pub(super) fn name(owner: &str) -> String {
    format!("hopline-{owner}")
}

/// Returns the input of nft, which applies all or nothing.
pub(super) fn text(
    table: &str,
    families: &[Family],
    capture: DiversionMark,
    (captured, guarded): (&[DivertedConnections], &[UnforwardedPackets]),
) -> String {
    let mark = u32::from(capture.mark) << 16;
    let marked = format!("meta mark set meta mark & 0x0000ffff | {mark:#010x} accept");
    // After destination NAT (dstnat, -100): an answer to a masqueraded half has the client's address again, as the socket
    // has.
    let mut text = format!(
        "table inet {table} {{\n  chain prerouting {{\n    type filter hook prerouting priority dstnat + 1; policy accept;\n"
    );
    // What comes back for connections that end here, and ICMP about them.
    // A call is none of them, though its ports may be those of a connection that has just ended.
    let _ = writeln!(
        text,
        "    meta l4proto tcp tcp flags & (fin | syn | rst | ack) != syn socket transparent 1 {marked}"
    );
    let _ = writeln!(text, "    meta l4proto {{ icmp, ipv6-icmp }} socket transparent 1 {marked}");
    text.push_str(&held_syns::listener_rules(captured, families, &marked));
    text.push_str("  }\n");
    text.push_str(&held_syns::chains(captured, guarded, families));
    text.push_str("}\n");
    text
}
