//! Address translator in front of a host, for UDP ports.

use super::damage::{Transport, UDP, write_and_fix_checksum};
use hopline_link::NatPortPolicy;
use std::collections::BTreeMap;

/// Verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NatVerdict {
    Accept,
    Drop,
}

/// Lowest port that is rewritten; ports below belong to services.
const FIRST: u16 = 1024;
/// Shift of the ports with each rebinding. It is odd, so that a port recurs only after all the rest.
const STEP: u16 = 20_011;

/// Port mapping of the host: a rotation of the ports from [`FIRST`] on.
#[derive(Debug, Default)]
pub(super) struct Nat {
    /// Number of rebindings.
    rebindings: u16,
    /// Treatment of the old ports; `None` before the first rebinding.
    old: Option<NatPortPolicy>,
    /// Public ports from which the host has sent since the last rebinding, with its own ports.
    mapped: BTreeMap<u16, u16>,
}

impl Nat {
    pub(super) fn rebind(&mut self, old: NatPortPolicy) {
        self.rebindings = self.rebindings.wrapping_add(1);
        self.old = Some(old);
        self.mapped.clear();
    }

    /// Rewrites the source of a packet that the host sends.
    pub(super) fn translate_outgoing(&mut self, packet: &mut [u8]) {
        let Some(at) = self.port_at(packet, 0) else { return };
        let private = port(packet, at);
        let public = rotated(private, self.rebindings);
        self.mapped.insert(public, private);
        set_port(packet, at, public);
    }

    /// Rewrites the destination of a packet for the host.
    pub(super) fn translate_incoming(&mut self, packet: &mut [u8]) -> NatVerdict {
        let Some(at) = self.port_at(packet, 2) else { return NatVerdict::Accept };
        let public = port(packet, at);
        let private = match (self.mapped.get(&public), self.old) {
            (Some(&private), _) => private,
            (None, Some(NatPortPolicy::Kept)) => unrotated(public, self.rebindings.wrapping_sub(1)),
            _ => return NatVerdict::Drop,
        };
        set_port(packet, at, private);
        NatVerdict::Accept
    }

    /// Returns the offset of the port to be rewritten. `None` if the packet is not translated.
    fn port_at(&self, packet: &[u8], offset: usize) -> Option<usize> {
        self.old?;
        let transport = Transport::of(packet).filter(|t| t.protocol == UDP)?;
        Some(transport.header + offset)
    }
}

fn port(packet: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([packet[at], packet[at + 1]])
}

fn set_port(packet: &mut [u8], at: usize, port: u16) {
    for (index, byte) in port.to_be_bytes().into_iter().enumerate() {
        write_and_fix_checksum(packet, at + index, byte);
    }
}

fn rotated(port: u16, times: u16) -> u16 {
    shift_port(port, u64::from(times) * u64::from(STEP))
}

fn unrotated(port: u16, times: u16) -> u16 {
    let all = u64::from(u16::MAX - FIRST) + 1;
    shift_port(port, all - u64::from(times) * u64::from(STEP) % all)
}

fn shift_port(port: u16, by: u64) -> u16 {
    let all = u64::from(u16::MAX - FIRST) + 1;
    match port.checked_sub(FIRST) {
        Some(offset) => FIRST + ((u64::from(offset) + by) % all) as u16,
        None => port,
    }
}

#[cfg(test)]
mod tests {
    use super::super::damage::tests::{packet, sum};
    use super::*;

    fn out(nat: &mut Nat, from: u16) -> u16 {
        let mut datagram = packet(UDP, [from, 7], b"data");
        nat.translate_outgoing(&mut datagram);
        assert_eq!(sum(&datagram), 0);
        assert_eq!(port(&datagram, 22), 7);
        port(&datagram, 20)
    }

    fn into(nat: &mut Nat, to: u16) -> Option<u16> {
        let mut datagram = packet(UDP, [7, to], b"data");
        let passage = nat.translate_incoming(&mut datagram);
        assert_eq!(sum(&datagram), 0);
        (passage == NatVerdict::Accept).then(|| port(&datagram, 22))
    }

    #[test]
    fn ports_are_unchanged_before_the_first_rebinding() {
        let mut nat = Nat::default();
        assert_eq!(
            (out(&mut nat, 5000), into(&mut nat, 5000), into(&mut nat, 6000)),
            (5000, Some(5000), Some(6000))
        );
    }

    #[test]
    fn a_forgotten_port_is_closed_and_the_new_one_opens_after_the_host_sends() {
        let mut nat = Nat::default();
        nat.rebind(NatPortPolicy::Forgotten);
        assert_eq!(into(&mut nat, 5000), None);
        assert_eq!(into(&mut nat, 5000 + STEP), None);
        assert_eq!(out(&mut nat, 5000), 5000 + STEP);
        assert_eq!((into(&mut nat, 5000 + STEP), into(&mut nat, 5000)), (Some(5000), None));
        nat.rebind(NatPortPolicy::Forgotten);
        assert_eq!(into(&mut nat, 5000 + STEP), None);
    }

    #[test]
    fn a_kept_port_still_reaches_the_host() {
        let mut nat = Nat::default();
        for _ in 0..10 {
            let before = out(&mut nat, 60_000);
            nat.rebind(NatPortPolicy::Kept);
            assert_eq!(into(&mut nat, before), Some(60_000));
            let after = out(&mut nat, 60_000);
            assert_ne!(after, before);
            assert_eq!((into(&mut nat, before), into(&mut nat, after)), (Some(60_000), Some(60_000)));
        }
    }

    #[test]
    fn tcp_services_and_invalid_checksums_are_unchanged() {
        let mut nat = Nat::default();
        nat.rebind(NatPortPolicy::Forgotten);
        let whole = packet(6, [5000, 7], b"data");
        let mut passed = whole.clone();
        nat.translate_outgoing(&mut passed);
        assert_eq!((&passed, nat.translate_incoming(&mut whole.clone())), (&whole, NatVerdict::Accept));
        assert_eq!(out(&mut nat, 80), 80);
        let mut damaged = packet(UDP, [5000, 7], b"data");
        damaged[30] ^= 1;
        nat.translate_outgoing(&mut damaged);
        assert_ne!(sum(&damaged), 0);
    }
}
