//! Bytes, addresses and options that pass through the proxy.

use crate::split::daemon::Daemon;
use crate::split::hosts::{bytes, echo, exchange, read_to_end};
use crate::split::router::{Ground, Ip, client};
use hopline_linux::Namespace;
use rustix::net::{SendFlags, send};
use std::io::Write;
use std::process::{Command, Stdio};

pub(crate) fn bytes_cross_both_ways_under_both_addresses_over_ipv4() {
    bytes_cross_both_ways_under_both_addresses(Ip::V4);
}

pub(crate) fn bytes_cross_both_ways_under_both_addresses_over_ipv6() {
    bytes_cross_both_ways_under_both_addresses(Ip::V6);
}

fn bytes_cross_both_ways_under_both_addresses(ip: Ip) {
    const LEN: usize = 8 << 20;
    let ground = Ground::diverted();
    let proxy = Daemon::start(&ground.router, &[]);
    let listener = ground.listen(ip);
    let (ours, theirs) = ground.connect_through_proxy(&listener);
    assert_eq!(ours.local_addr().unwrap().ip(), client(ip));
    assert_eq!(theirs.peer_addr().unwrap(), ours.local_addr().unwrap());
    assert_eq!(theirs.local_addr().unwrap(), ours.peer_addr().unwrap());
    let (forth, back) = (bytes("forth", LEN), bytes("back", LEN + 1));
    let (forth_hash, back_hash) = (blake3::hash(&forth), blake3::hash(&back));
    let ends = [exchange(ours, forth), exchange(theirs, back)];
    assert_eq!(ends.map(|end| end.join().unwrap()), [back_hash, forth_hash]);
    let figures = proxy.ended();
    assert_eq!((figures["to_servers_bytes"], figures["to_clients_bytes"]), (LEN as u64, LEN as u64 + 1));
    let counted = ["accepted", "ended", "open", "reset"].map(|what| figures[&format!("connections_{what}")]);
    assert_eq!(counted, [1, 1, 0, 0]);
}

pub(crate) fn urgent_data_arrive_in_order() {
    let ground = Ground::diverted();
    let _proxy = Daemon::start(&ground.router, &[]);
    let listener = ground.listen(Ip::V4);
    let (mut ours, mut theirs) = ground.connect_through_proxy(&listener);
    for round in 0..20u8 {
        ours.write_all(&[b'a', round]).unwrap();
        assert_eq!(send(&ours, b"!", SendFlags::OOB).unwrap(), 1);
        ours.write_all(b"z").unwrap();
    }
    drop(ours);
    let expected: Vec<u8> = (0..20).flat_map(|round| [b'a', round, b'!', b'z']).collect();
    assert_eq!(read_to_end(&mut theirs).unwrap(), blake3::hash(&expected));
}

pub(crate) fn many_connections_at_once_do_not_mix() {
    const MANY: usize = 100;
    let ground = Ground::diverted();
    let proxy = Daemon::start(&ground.router, &[]);
    let listener = ground.listen(Ip::V4);
    let pairs: Vec<_> = (0..MANY).map(|_| ground.connect_through_proxy(&listener)).collect();
    let ends = pairs.into_iter().enumerate().map(|(number, (ours, theirs))| {
        let [forth, back] = ["forth", "back"].map(|way| bytes(&format!("{way} {number}"), 50_000 + number));
        let hashes = [blake3::hash(&back), blake3::hash(&forth)];
        (hashes, [exchange(ours, forth), exchange(theirs, back)])
    });
    for (hashes, ends) in ends.collect::<Vec<_>>() {
        assert_eq!(ends.map(|end| end.join().unwrap()), hashes);
    }
    assert_eq!(proxy.ended()["connections_ended"], MANY as u64);
}

pub(crate) fn halves_have_the_options_of_their_hosts_also_after_a_reload() {
    let ground = Ground::diverted();
    let mut proxy = Daemon::start(&ground.router, &[("mobile", "bbr")]);
    let listener = ground.listen(Ip::V4);
    let (mut ours, mut theirs) = ground.connect_through_proxy(&listener);
    echo([&mut ours, &mut theirs], b"one").unwrap();
    assert_eq!(told(&ground.router, Ip::V4), [("10.8.0.1", "cubic"), ("10.9.0.1", "bbr")].map(owned));
    proxy.send_request("reno");
    // It is asked after it has heard that.
    proxy.figures();
    let (mut next, mut next_theirs) = ground.connect_through_proxy(&listener);
    echo([&mut next, &mut next_theirs], b"two").unwrap();
    let both = [("10.8.0.1", "cubic"), ("10.8.0.1", "cubic"), ("10.9.0.1", "bbr"), ("10.9.0.1", "reno")];
    assert_eq!(told(&ground.router, Ip::V4), both.map(owned));
    echo([&mut theirs, &mut ours], b"the old one goes on").unwrap();
}

pub(crate) fn halves_have_the_options_of_the_networks_of_their_hosts() {
    let ground = Ground::diverted();
    let settings = [("networks", "10.7.0.0/16,10.9.0.0/24,fd09::1"), ("mobile", "bbr")];
    let _proxy = Daemon::start(&ground.router, &settings);
    for (ip, server, client) in [(Ip::V4, "10.8.0.1", "10.9.0.1"), (Ip::V6, "fd08::1", "fd09::1")] {
        let listener = ground.listen(ip);
        let (mut ours, mut theirs) = ground.connect_through_proxy(&listener);
        echo([&mut ours, &mut theirs], b"one").unwrap();
        assert_eq!(told(&ground.router, ip), [(server, "cubic"), (client, "bbr")].map(owned));
    }
}

fn owned((peer, congestion): (&str, &str)) -> (String, String) {
    (peer.into(), congestion.into())
}

/// Whom the halves on a router lead to, and their congestion control, as ss(8) sees them.
fn told(router: &Namespace, ip: Ip) -> Vec<(String, String)> {
    let mut command = Command::new("ss");
    let form = if ip == Ip::V4 { "-4tinO" } else { "-6tinO" };
    command.args(["-H", form, "state", "established"]).stdout(Stdio::piped());
    let output = router.spawn(command).unwrap().wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let half = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let congestion = words.iter().find(|word| ["bbr", "cubic", "reno"].contains(word)).unwrap();
        let (peer, _port) = words[3].rsplit_once(':').unwrap();
        (peer.trim_matches(['[', ']']).to_owned(), (*congestion).to_owned())
    };
    let mut halves: Vec<_> = text.lines().map(half).collect();
    halves.sort();
    halves
}
