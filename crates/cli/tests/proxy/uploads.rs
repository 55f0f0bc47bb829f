//! Uploads of a mobile host: `nack` on the router requests lost segments, and `nack-host` on the mobile host retransmits
//! them.

use crate::proxy::nat::{NATS, tcp_count, translating_ground};
use crate::proxy::transfer::{Pace, Transfer, run_transfer};
use crate::proxy::world::{Daemon, Ground, Version, shell, until_or};
use std::fs;
use std::time::Duration;

/// Bytes of an upload: some 700 segments.
const BYTES: usize = 1_000_000;
/// Losses towards the server: one in twenty segments. The handshake is spared.
const LOSSES: &str = "meta l4proto tcp numgen inc mod 20 == 7";
const PORT: u16 = 80;
/// Least number of retransmissions in an upload that loses 35 segments: of station and host, or of TCP without them.
///
/// 37 on a quiet machine; on a busy one TCP's timer is sometimes faster.
const REPAIRS: u64 = 20;
/// Most retransmissions of TCP if station and host repair: fewer than without them.
const REPAIRS_BY_TCP: u64 = 15;
const STATION: &str = "[[proxy]]\nkind = \"nack\"\ninterface = \"mobile\"\n";

/// Drops segments that arrive at the router from the mobile host, before any other rule sees them.
fn lose_uploads(ground: &Ground) {
    let drop = format!("iifname mobile {LOSSES} drop");
    let rules = format!(
        "table inet air {{ chain from_mobile {{ type filter hook prerouting priority -400; {drop}; }}; }}"
    );
    shell(&ground.router, &format!("nft '{rules}'"));
}

/// Starts the daemon of the mobile host.
fn host(ground: &Ground) -> Daemon {
    let (file, state) = (ground.folder.path().join("host.toml"), ground.folder.path().join("host"));
    let text = format!(
        "state_dir = \"{}\"\n[[proxy]]\nkind = \"nack-host\"\ninterface = \"mobile\"\n",
        state.display()
    );
    fs::write(&file, text).unwrap();
    let mut daemon = Daemon::begin(&ground.mobile, &file, &state);
    daemon.wait_until("the host's daemon runs", |status| status["proxies"][0]["state"] == "running");
    daemon
}

fn upload(ground: &Ground, version: Version) {
    run_transfer([&ground.mobile, &ground.server], (version.server(), PORT), BYTES);
}

/// Returns the segments that the host's TCP retransmits in each of up to three uploads: until they are few, since its timer is sometimes
/// faster on a busy machine.
fn retransmissions_by_tcp(ground: &Ground, version: Version) -> Vec<u64> {
    let mut by_tcp = Vec::new();
    while by_tcp.len() < 3 && by_tcp.last().is_none_or(|&last| last > REPAIRS_BY_TCP) {
        let before = tcp_count(&ground.mobile, "RetransSegs");
        upload(ground, version);
        by_tcp.push(tcp_count(&ground.mobile, "RetransSegs") - before);
    }
    by_tcp
}

/// Waits until a counter has at least this value.
fn reaches(daemon: &Daemon, (proxy, figure): (&str, &str), least: u64) {
    let now = || daemon.metric(proxy, figure);
    until_or(|| panic!("{figure} of {proxy} is {}: {}", now(), daemon.status()), || now() >= least);
}

fn rules_of(ground: &Ground) -> String {
    shell(&ground.mobile, "iptables -w -S -t security; ip6tables -w -S -t security")
}

/// Checks that the station requests segments, and that the host retransmits them.
pub(crate) fn asks_and_is_answered(ground: &Ground, version: Version) {
    lose_uploads(ground);
    // Creates the tables, which stay.
    let (before, of_host) = (ground.listing(), rules_of(ground));
    let [mut station, mut host] = [ground.start(STATION), host(ground)];
    let by_tcp = retransmissions_by_tcp(ground, version);
    reaches(&station, ("nack", "repaired_ranges"), REPAIRS);
    reaches(&host, ("nack-host", "local_retransmissions"), REPAIRS);
    // The host's TCP retransmits next to nothing itself; without the mechanism it retransmits all.
    assert!(
        by_tcp.iter().any(|&segments| segments <= REPAIRS_BY_TCP),
        "{by_tcp:?} segments were sent again by TCP"
    );
    assert!(station.metric("nack", "announcements") > 0);
    assert_eq!(host.metric("nack-host", "unfit_questions"), 0);
    for what in [&ground.mobile, &ground.server] {
        assert_eq!(tcp_count(what, "OutRsts"), 0, "packets were known");
    }
    for daemon in [&mut station, &mut host] {
        assert!(daemon.ended_by("TERM").success());
    }
    ground.is_as_before(&before, "nack");
    assert_eq!(rules_of(ground), of_host);
}

pub(crate) fn segments_that_the_station_requests_are_retransmitted_by_the_mobile_host() {
    asks_and_is_answered(&Ground::new(), Version::V4);
}

pub(crate) fn an_ordinary_host_is_not_requested() {
    let ground = Ground::new();
    lose_uploads(&ground);
    let station = ground.start(STATION);
    upload(&ground, Version::V4);
    reaches(&station, ("nack", "unasked_ranges"), REPAIRS);
    let by_tcp = tcp_count(&ground.mobile, "RetransSegs");
    assert!(by_tcp >= REPAIRS, "{by_tcp} segments were sent again by TCP");
    assert_eq!(station.metric("nack", "questions"), 0);
    assert_eq!(station.metric("nack", "sent_to_mobile_packets"), 0);
}

pub(crate) fn without_a_station_a_host_only_announces() {
    for nat in [None, Some(&NATS[0])] {
        let ground = nat.map_or_else(Ground::new, translating_ground);
        let host = host(&ground);
        upload(&ground, Version::V4);
        reaches(&host, ("nack-host", "announcements"), 1);
        assert_eq!(host.metric("nack-host", "local_retransmissions"), 0);
        assert_eq!(tcp_count(&ground.server, "OutRsts"), 0);
        assert_eq!(tcp_count(&ground.server, "InErrs"), 0);
    }
}

pub(crate) fn either_end_repairs_again_after_it_was_killed_and_restarted() {
    let ground = Ground::new();
    lose_uploads(&ground);
    let file = ground.write(STATION);
    let (mut station, mut host) = (ground.start_file(&file), host(&ground));
    // Some eight seconds.
    let pace = Pace::Chunks(Duration::from_millis(60));
    let to = (Version::V4.server(), PORT);
    let upload = Transfer::start([&ground.mobile, &ground.server], to, 2 * BYTES, pace).unwrap();
    reaches(&station, ("nack", "repaired_ranges"), 5);
    station.ended_by("KILL");
    station = ground.start_file(&file);
    reaches(&station, ("nack", "repaired_ranges"), 5);
    host.ended_by("KILL");
    host = self::host(&ground);
    reaches(&host, ("nack-host", "local_retransmissions"), 5);
    upload.arrives("an upload past two ends that were killed");
}
