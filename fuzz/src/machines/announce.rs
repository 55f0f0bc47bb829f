//! Announcement of TPA in TCP handshakes.

use super::Choices;
use hopline_core::{Duration, Instant};
use hopline_proxy::announce::{AnnounceAction, Announcer, Config, Direction, Role};

/// Most hosts in the cache.
const MOST: usize = 3;
/// Bits of a TCP header that may change: two reserved bits, and the checksum.
const CHANGED: [(usize, u8); 3] = [(12, 0x0c), (16, 0xff), (17, 0xff)];

/// Script of packets in both directions, and time. Only the two bits and the checksum of a packet change, and a correct
/// checksum stays correct. Hosts are learned only from announcements, and forgotten after the lifetime.
pub fn announce(data: &[u8]) {
    let mut choices = Choices(data);
    let role = choices.pick(&[Role::Client, Role::Server]);
    let config = Config { max_entries: MOST, ..Config::new(role) };
    let mut announcer = Announcer::new(config);
    let (mut now, mut announced, mut learned) = (Instant::ZERO, 0, Vec::new());
    while !choices.is_over() {
        now += Duration::from_millis(u64::from(choices.byte()) * 997);
        let towards = choices.pick(&[Direction::ToPeer, Direction::ToHosts]);
        let len = usize::from(choices.byte() % 80);
        let before: Vec<u8> = (0..len).map(|_| choices.byte()).collect();
        let mut packet = before.clone();
        match announcer.pass(now, towards, &mut packet) {
            AnnounceAction::Unchanged => assert_eq!(packet, before),
            AnnounceAction::SynMarked => announced += 1,
            AnnounceAction::MarkRead | AnnounceAction::SynAckMarked => assert_eq!(role, Role::Server),
            AnnounceAction::Learned(host, speaks) => {
                assert!(announced > 0 && role == Role::Client);
                announced -= 1;
                assert_eq!(announcer.transport_support(now, host), Some(speaks));
                learned.push((host, now));
            }
        }
        check_change(&before, &packet);
    }
    let known = learned.iter().filter(|(host, _)| announcer.transport_support(now, *host).is_some());
    let known: std::collections::BTreeSet<_> = known.map(|(host, _)| host).collect();
    assert!(known.len() <= MOST);
    let later = now + config.host_lifetime + Duration::from_nanos(1);
    assert!(learned.iter().all(|(host, _)| announcer.transport_support(later, *host).is_none()));
}

/// Checks that a packet differs only in the bits that may change, and that the sum over its 16-bit words is the same.
fn check_change(before: &[u8], after: &[u8]) {
    assert_eq!(before.len(), after.len());
    if before == after {
        return;
    }
    let start = if before[0] >> 4 == 4 { usize::from(before[0] & 0xf) * 4 } else { 40 };
    for (at, (before, after)) in before.iter().zip(after).enumerate() {
        let may = CHANGED.iter().find(|(place, _)| start + place == at).map_or(0, |(_, bits)| *bits);
        assert_eq!(before & !may, after & !may, "byte {at}");
    }
    assert_eq!(sum(&before[start..]), sum(&after[start..]));
}

/// Returns the ones' complement sum, in which 0 and 0xffff are equal (RFC 1071).
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    words.sum::<u32>() % 0xffff
}
