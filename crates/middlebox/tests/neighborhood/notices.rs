//! Sending of notices, reactions to them, and attacks with forged ones.

use crate::neighborhood::place::{ALL, QUEUE, RADIO, RATE, Switch, address, notice, notice_frame};
use hopline_core::Duration;
use hopline_linux::frames::{FrameSocket, IPV4};
use hopline_middlebox::neighborhood::{Config, Neighborhood, Source};
use hopline_queue::neighborhood_red::config::{IncomingPolicy, Limits, NoticeLimits};
use hopline_wire::ncn;
use std::net::Ipv4Addr;
use std::thread::sleep;

fn ms(millis: u64) -> std::time::Duration {
    std::time::Duration::from_millis(millis)
}

/// Sends a packet of a flow, so that the host lies on a path.
fn carry(place: &Switch, from: u8, to: u8) {
    place.datagrams(from).send_to(b"data", (address(to), 4000)).unwrap();
}

pub(crate) fn a_congested_node_sends_notices_and_neighbours_drop_until_they_expire() {
    let place = Switch::new(3);
    let [suffers, takes] = [place.member(0, |_| {}), place.member(1, |_| {})];
    carry(&place, 0, 2);
    carry(&place, 1, 2);
    // Without congestion, no node sends a notice.
    suffers.set_load([30, 2, 2]);
    takes.set_load([30, 0, 25]);
    takes.await_metric("channel_busy_permille", |busy| (250..350).contains(&busy));
    assert_eq!((suffers.metric("notices_sent"), takes.metric("notices_received")), (0, 0));
    suffers.set_load([60, 2, 2]);
    takes.set_load([60, 0, 50]);
    suffers.await_metric("notices_sent", |sent| sent > 3);
    // avg 146 makes pb 0.14 · 46 / 140, of which a node with avgtx 122 has 3.9 %.
    takes.await_metric("drop_probability_out_ppm", |ppm| (34_000..44_000).contains(&ppm));
    assert_eq!((takes.metric("notices_sent"), takes.metric("drop_probability_in_ppm")), (0, 0));
    assert_eq!(suffers.metric("drop_probability_out_ppm"), 0, "nobody complains of who suffers");
    suffers.set_load([20, 2, 2]);
    takes.await_metric("drop_probability_out_ppm", |ppm| ppm == 0);
    suffers.await_metric("average_packets", |average| average < 60);
    let sent = suffers.metric("notices_sent");
    sleep(ms(600));
    assert_eq!(suffers.metric("notices_sent"), sent, "it is over");
    takes.end();
    suffers.end();
}

pub(crate) fn the_encoding_of_notices_is_stable() {
    let place = Switch::new(3);
    let suffers = place.member(0, |_| {});
    let mut heard = place.frames(1);
    carry(&place, 0, 2);
    suffers.set_load([100, 0, 0]);
    let everything = [
        &[0x45, 0, 0, 36, 0, 0, 0x40, 0, 1, 17, 0x6f, 0x6f, 10, 90, 0, 1, 255, 255, 255, 255][..],
        &[0x03, 0xfe, 0x03, 0xfe, 0, 16, 0xea, 0xe7],
        // All packets are to be dropped for 400 ms.
        &[1, 0, 0x01, 0x90, 0xff, 0xff, 0xff, 0xff],
    ]
    .concat();
    let header = [&[0xff; 6][..], &place.frames(0).address().0, &IPV4.to_be_bytes()].concat();
    let expected = [header, everything].concat();
    let found = (0..1000).any(|_| {
        sleep(ms(10));
        let mut found = false;
        heard.receive(|frame| found |= frame == expected).unwrap();
        found
    });
    assert!(found, "{}", suffers.end().show());
}

pub(crate) fn a_flood_of_forged_notices_is_ignored() {
    let place = Switch::new(2);
    let node = place.member(0, |_| {});
    node.set_load([60, 0, 40]);
    let attacker = place.frames(1);
    // The attacker has an address and announces it.
    let own = notice_frame(&attacker, address(1), ALL, ncn::PORT, &notice(0.0));
    attacker.send(&own).unwrap();
    for forged in 0..=200_u8 {
        let from = Ipv4Addr::new(10, 90, 1, forged);
        attacker.send(&notice_frame(&attacker, from, ALL, ncn::PORT, &notice(1.0))).unwrap();
        sleep(ms(1));
    }
    // The node also ignores forged notices with its own address.
    attacker.send(&notice_frame(&attacker, address(0), ALL, ncn::PORT, &notice(1.0))).unwrap();
    node.await_metric("notices_own", |own| own == 1);
    assert_eq!((node.metric("notices_received"), node.metric("notices_stranger")), (203, 201));
    assert_eq!((node.metric("drop_probability_out_ppm"), node.metric("neighbours")), (0, 1));
    node.end();
}

pub(crate) fn total_congestion_is_obeyed_for_two_seconds_of_twelve() {
    let place = Switch::new(2);
    // A tenth of that would be too short for the metrics, and the full time too long.
    let limits = Limits {
        max_lifetime: Duration::from_millis(800),
        recovery_time: Duration::from_secs(4),
        ..Limits::DEFAULT
    };
    let node = place.member(0, |config| config.machine.notice_limits = NoticeLimits::On(limits));
    node.set_load([60, 0, 40]);
    node.await_metric("average_packets", |average| average > 140);
    let attacker = place.frames(1);
    let flood = notice_frame(&attacker, address(1), ALL, ncn::PORT, &notice(1.0));
    let highest_after = |wanted: fn(u64) -> bool| {
        for _ in 0..400 {
            attacker.send(&flood).unwrap();
            sleep(ms(10));
            let ppm = node.metric("drop_probability_out_ppm");
            if wanted(ppm) {
                return ppm;
            }
        }
        unreachable!("{}", node.metric("drop_probability_out_ppm"))
    };
    highest_after(|ppm| ppm == 1_000_000);
    let meanwhile = highest_after(|ppm| ppm < 1_000_000);
    // maxp / maxth of 98 packets.
    assert!((50_000..60_000).contains(&meanwhile), "{meanwhile}");
    assert!(node.metric("notices_capped") > 0 && node.metric("notices_too_soon") > 10);
    node.end();
}

pub(crate) fn a_vanished_source_leaves_the_channel_idle() {
    let place = Switch::new(2);
    let node = place.member(0, |config| config.silence = Duration::from_millis(200));
    carry(&place, 0, 1);
    node.set_load([100, 0, 0]);
    node.await_metric("notices_sent", |sent| sent > 3);
    assert_eq!(node.metric("source_silent"), 0);
    node.stop_readings();
    node.await_metric("source_silent", |silent| silent == 1);
    node.await_metric("average_packets", |average| average == 0);
    assert!(node.metric("samples_missing") > 10 && node.metric("samples_idle") > 10);
    let sent = node.metric("notices_sent");
    sleep(ms(400));
    assert_eq!((node.metric("notices_sent"), node.metric("channel_busy_permille")), (sent, 0));
    node.set_load([100, 0, 0]);
    node.await_metric("source_silent", |silent| silent == 0);
    node.await_metric("notices_sent", |more| more > sent);
    node.end();
}

pub(crate) fn packets_to_the_notice_port_get_no_answer() {
    let place = Switch::new(2);
    let node = place.member(0, |_| {});
    let mut attacker = place.frames(1);
    let to_node = (place.frames(0).address(), address(0));
    // It requests almost nothing, so that no packet is dropped that might have been answered.
    let asking = |port| notice_frame(&attacker, address(1), to_node, port, &notice(1e-6));
    let (good, elsewhere) = (asking(ncn::PORT), asking(ncn::PORT + 1));
    let mut malformed = good.clone();
    malformed[14 + 28] = 7;
    // Its checksum is invalid.
    malformed[14 + 26..14 + 28].fill(0);
    for _ in 0..50 {
        attacker.send(&good).unwrap();
        attacker.send(&malformed).unwrap();
    }
    node.await_metric("notices_malformed", |malformed| malformed == 50);
    assert_eq!(node.metric("notices_received"), 50);
    sleep(ms(200));
    assert_eq!(answers(&mut attacker), Vec::<Vec<u8>>::new());
    // The kernel does answer on a port without a listener.
    attacker.send(&elsewhere).unwrap();
    let answered = (0..500).any(|_| {
        sleep(ms(10));
        !answers(&mut attacker).is_empty()
    });
    assert!(answered);
    node.end();
}

/// Returns the received IPv4 packets for the host of this socket.
fn answers(socket: &mut FrameSocket) -> Vec<Vec<u8>> {
    let (own, mut answers) = (socket.address().0, Vec::new());
    let mut keep = |frame: &[u8]| {
        if frame[..6] == own && frame[12..14] == IPV4.to_be_bytes() {
            answers.push(frame.to_vec());
        }
    };
    while socket.receive(&mut keep).unwrap() > 0 {}
    answers
}

pub(crate) fn errors_are_named() {
    let place = Switch::new(1);
    let folder = tempfile::tempdir().unwrap();
    let source = Source::Socket(folder.path().join("radio"));
    let good = Config { source, ..Config::new(RADIO, RATE, QUEUE) };
    let open = |config: &Config| place.host(0).run(|| Neighborhood::open(config)).unwrap();
    let why = |config: &Config| open(config).unwrap_err().to_string();
    let held = open(&good).unwrap();
    let error = why(&good);
    assert!(error.contains("taking UDP port 1022 at wlan0: Address already in use"), "{error}");
    let error = why(&Config { port: 1023, ..good.clone() });
    assert!(error.contains("NFQUEUE 9"), "{error}");
    drop(held);
    let error = why(&Config { interface: "nothing".into(), ..good.clone() });
    assert!(error.contains("there is no interface `nothing` here"), "{error}");
    let error = why(&Config { interface: "lo".into(), ..good.clone() });
    assert!(error.contains("it is no interface of Ethernet or 802.11"), "{error}");
    let mut relayed = good.clone();
    relayed.machine.incoming = IncomingPolicy::Relayed;
    let error = why(&relayed);
    assert!(error.contains("notices are not passed on here"), "{error}");
    // There is no radio here; on a host with one, this interface is not it.
    let survey = open(&Config { source: Source::Survey, ..good });
    assert!(survey.map(drop).is_err_and(|error| error.to_string().contains("nl80211")) || has_nl80211());
}

/// Returns whether the kernel of this host supports nl80211.
fn has_nl80211() -> bool {
    std::path::Path::new("/sys/module/cfg80211").exists()
}
