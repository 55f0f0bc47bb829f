//! Received data of many connections, and how much of it is kept.

use super::net::{App, B, Net, address, exchange, transport};
use super::shared;
use crate::{ConnectionKey, HostConfig, HostEvent, Path};
use hopline_core::{Duration, Instant};
use hopline_link::Emulation;

const BUDGET: u64 = 256 << 10;
const OTHERS: usize = 16;
const EACH: u64 = 100_000;

/// Hosts that all send to B, which reads nothing.
fn unread() -> (Net, Vec<(usize, ConnectionKey)>, Vec<ConnectionKey>) {
    let config = HostConfig { receive_memory: BUDGET, ..HostConfig::default() };
    let link = Emulation::delay(Duration::from_millis(10)).with_rate(Some(20_000_000));
    let mut net = Net::new(OTHERS + 2, &config, &link, 1);
    net.nodes[B].host.listen(shared()[B].clone(), transport(), 2 * OTHERS).unwrap();
    let mut senders = Vec::new();
    for node in (0..net.nodes.len()).filter(|node| *node != B) {
        let host = &mut net.nodes[node].host;
        let key = host.connect(net.now, Path::to(address(B)), shared()[0].clone(), transport()).unwrap();
        senders.push((node, key));
    }
    let mut apps: Vec<App> = senders.iter().map(|(node, key)| App::new(*node, *key, EACH)).collect();
    net.run_while(Instant::from_secs(5), |net| {
        apps.iter_mut().for_each(|app| app.step(net));
        true
    });
    let accepted = |(_, event): &(usize, HostEvent)| match event {
        HostEvent::Accepted(key) => Some(*key),
        _ => None,
    };
    let accepted = net.events.iter().filter_map(accepted).collect();
    (net, senders, accepted)
}

#[test]
fn unread_data_take_at_most_one_and_a_half_times_the_budget_and_arrive_once_read() {
    let (mut net, _, accepted) = unread();
    assert_eq!(accepted.len(), OTHERS + 1);
    let held = net.nodes[B].host.stats().receive_memory;
    assert!((BUDGET..=BUDGET + BUDGET / 2).contains(&held), "{held} bytes of {} that were sent", 17 * EACH);
    let mut received = vec![0; accepted.len()];
    let done = net.run_while(Instant::from_secs(120), |net| {
        for (received, key) in received.iter_mut().zip(&accepted) {
            let conn = net.conn(B, *key);
            *received += std::iter::from_fn(|| conn.recv()).map(|data| data.len() as u64).sum::<u64>();
        }
        received.iter().any(|received| *received < EACH)
    });
    assert!(done, "{received:?}");
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.nodes[B].host.stats().receive_memory, 0);
}

#[test]
fn a_removed_connection_frees_its_memory() {
    let (mut net, _, accepted) = unread();
    for key in accepted {
        assert!(net.nodes[B].host.remove(key));
    }
    net.run_for(Duration::from_secs(60));
    assert_eq!((net.nodes[B].host.stats().receive_memory, net.nodes[B].host.stats().connections), (0, 0));
}

/// Returns the times that 5 MB take over 100 Mb/s and a round trip of 200 ms with 5 % loss, one for each
/// seed.
fn over_a_long_fat_lossy_path(initial_receive_window: u64, seeds: core::ops::Range<u64>) -> Vec<Duration> {
    let link = Emulation::delay(Duration::from_millis(100))
        .with_rate(Some(100_000_000))
        .with_queue(Some(500))
        .with_loss(0.05);
    let config = transport().with_initial_receive_window(initial_receive_window);
    let one = |seed| {
        let mut net = Net::new(2, &HostConfig::default(), &link, seed);
        net.nodes[B].host.listen(shared()[B].clone(), config, 1).unwrap();
        let [at_a, at_b] = net.open(&shared(), config);
        let began = net.now;
        let mut apps = [App::new(0, at_a, 5_000_000), App::new(B, at_b, 0)];
        assert!(exchange(&mut net, &mut apps, Instant::from_secs(100)));
        net.now.since(began)
    };
    seeds.map(one).collect()
}

#[test]
fn a_small_initial_window_does_not_slow_a_transfer_over_a_long_fat_lossy_path() {
    let [whole, small] = [16 << 20, 256 << 10].map(|start| over_a_long_fat_lossy_path(start, 1..4));
    let mean = |all: &[Duration]| all.iter().map(|took| took.as_millis()).sum::<u64>() / all.len() as u64;
    assert!(mean(&small) <= mean(&whole) * 11 / 10, "{small:?} instead of {whole:?}");
}
