//! Keys that change by time.

use super::keys;
use super::net::{A, B, Net, bytes, transport};
use crate::{ConnectionKey, State, TransportConfig};
use hopline_core::Duration;
use hopline_link::Emulation;

/// Numbers of a key, by default.
const KEY: u64 = 1 << 20;

fn patient() -> TransportConfig {
    transport().with_keep_alive(Some(Duration::from_secs(5))).with_silence_limit(None)
}

/// Returns the number of key changes of each end.
fn changes(net: &mut Net, at: [ConnectionKey; 2]) -> [u64; 2] {
    [A, B].map(|node| {
        let open = net.conn(node, at[node]).encryption.open().expect("it is open");
        open.session.sealer.key_since() / KEY
    })
}

/// A says something, and B has it within a second.
#[track_caller]
fn assert_sends(net: &mut Net, at: [ConnectionKey; 2]) {
    let now = net.now;
    net.conn(A, at[A]).send(now, bytes("still there")).unwrap();
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.conn(B, at[B]).recv().as_deref(), Some(&b"still there"[..]));
}

#[test]
fn both_directions_change_keys_every_two_minutes_even_if_only_one_carries_data() {
    let mut net = Net::pair(&keys(), patient());
    let at = net.open(&keys(), patient());
    for _ in 0..60 {
        assert_sends(&mut net, at);
        net.run_for(Duration::from_secs(9));
    }
    let [of_a, of_b] = changes(&mut net, at);
    assert!((4..=5).contains(&of_a) && (4..=5).contains(&of_b), "{of_a} and {of_b} changes in 600 s");
    for node in [A, B] {
        assert_eq!(net.conn(node, at[node]).rejections().total(), 0);
    }
}

#[test]
fn a_connection_survives_an_outage_longer_than_several_key_changes() {
    let mut net = Net::pair(&keys(), patient());
    let at = net.open(&keys(), patient());
    assert_sends(&mut net, at);
    for node in [A, B] {
        net.change_link(node, Emulation::default().with_loss(1.0));
    }
    let now = net.now;
    net.conn(A, at[A]).send(now, bytes("during the outage")).unwrap();
    net.run_for(Duration::from_secs(1000));
    assert_eq!(net.conn(A, at[A]).state(), State::Established);
    let during = changes(&mut net, at);
    assert!(during.iter().all(|changes| *changes <= 1), "{during:?}: the peer follows one at a time");
    for node in [A, B] {
        net.change_link(node, Emulation::delay(Duration::from_millis(20)));
    }
    net.run_for(Duration::from_secs(5));
    assert_eq!(net.conn(B, at[B]).recv().as_deref(), Some(&b"during the outage"[..]));
    for _ in 0..30 {
        assert_sends(&mut net, at);
        net.run_for(Duration::from_secs(9));
    }
    assert!(changes(&mut net, at).iter().all(|changes| *changes >= 2));
}

#[test]
fn a_key_change_loses_no_data() {
    let mut net = Net::pair(&keys(), patient());
    let at = net.open(&keys(), patient());
    net.run_for(Duration::from_secs(119));
    let now = net.now;
    net.conn(A, at[A]).send(now, vec![7; 1_000_000].into()).unwrap();
    net.run_for(Duration::from_secs(20));
    let conn = net.conn(B, at[B]);
    assert_eq!(std::iter::from_fn(|| conn.recv()).map(|data| data.len()).sum::<usize>(), 1_000_000);
    assert_eq!(changes(&mut net, at), [1, 1]);
    assert_eq!(net.conn(A, at[A]).stats().retransmissions, 0);
}
