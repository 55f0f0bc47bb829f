//! Whole runs as pcapng, judged by tshark.

mod support;

use hopline_core::{Duration, Instant, NodeId};
use hopline_harness::run;
use hopline_harness::tshark::{self, Decoded};
use hopline_routing::{aodv, dsr, olsr};
use hopline_sim::spec::{AddressResolution, OutageEffect, OutageSpec};
use hopline_sim::trace::PcapTracer;
use hopline_sim::{Spec, World};
use hopline_transport::tpa;
use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;
use support::{SpecBuilder, chain, link, ns2_tcp, standing, walk};
use tempfile::NamedTempFile;

fn main() -> ExitCode {
    let tests = hopline_harness::tests!([tshark::TSHARK];
        a_chain_over_aodv_is_tcp_aodv_and_all_frames_of_the_mac,
        tpa_is_decoded_by_its_dissector,
        a_chain_over_olsr_sends_hellos_and_tcs_before_data,
        a_chain_over_dsr_requests_its_route_and_includes_it_in_every_packet,
        arp_replies_precede_data,
        timestamps_are_monotonic_and_ttls_decrease,
        a_capture_with_drops_is_well_formed_and_has_the_reasons,
        a_base_station_has_an_interface_of_each_kind,
        an_outage_causes_an_icmp_error_about_a_segment,
        segments_of_present_day_tcp_with_all_options_are_well_formed,
    );
    run(tests, None)
}

/// The capture of a run, in a file that lasts as long as the value.
fn capture(spec: &Spec) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a temporary file");
    let out = BufWriter::new(File::create(file.path()).expect("the temporary file"));
    let mut world = World::new(spec, 1, PcapTracer::new(out, spec).expect("room for the header"));
    world.run_until(Instant::ZERO + spec.duration);
    let (_, pcap) = world.finish();
    pcap.finish().expect("room for the capture").into_inner().expect("room for the capture");
    file
}

fn has(decoded: &[Decoded], protocols: &str) -> bool {
    decoded.iter().any(|packet| packet.protocols == protocols)
}

/// Returns these fields as tshark prints them, of the packets for which the first is not empty.
fn field(file: &NamedTempFile, names: &[&str]) -> Vec<Vec<String>> {
    let rows = tshark::fields(file.path(), names);
    rows.into_iter().filter(|row| !row[0].is_empty()).collect()
}

fn a_chain_over_aodv_is_tcp_aodv_and_all_frames_of_the_mac() {
    let spec = chain(3).aodv(aodv::Config::rfc3561()).bulk(0, 3, ns2_tcp(8)).seconds(3);
    let file = capture(&spec);
    let decoded = tshark::assert_well_formed(file.path());
    assert!(decoded.len() > 1000, "{}", decoded.len());
    assert!(has(&decoded, "wlan"), "RTS, CTS, ACK");
    assert!(has(&decoded, "wlan:llc:ip:udp:aodv"));
    assert!(has(&decoded, "wlan:llc:ip:tcp"));
    let interfaces: Vec<_> = field(&file, &["frame.interface_name"]);
    assert!((0..4).all(|n| interfaces.iter().any(|row| row[0] == format!("n{n}"))));
}

fn tpa_is_decoded_by_its_dissector() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark/tpa.lua");
    let file = capture(&chain(3).transfer(0, 3, tpa::Config::tpa(3), 40_000).seconds(5));
    let decoded = tshark::assert_well_formed(file.path());
    assert!(has(&decoded, "wlan:llc:ip:udp:data"), "unknown to stock tshark");
    let names = ["tpa.block", "tpa.position", "_ws.malformed", "udp.dstport"];
    let rows = tshark::Capture::of(file.path()).with_script(script.as_ref()).fields(&names);
    let of_tpa: Vec<_> = rows.into_iter().filter(|row| !row[0].is_empty()).collect();
    // 40,000 bytes are 28 segments: two blocks of 12 and one of 4.
    for (block, segments) in [("0", 12), ("1", 12), ("2", 4)] {
        let is_there =
            |position: i32| of_tpa.iter().any(|row| row[0] == block && row[1] == position.to_string());
        assert!((0..segments).all(is_there) && !is_there(segments), "block {block}");
    }
    assert!(of_tpa.iter().all(|row| row[2].is_empty()));
    assert!(of_tpa.iter().any(|row| row[3] == "7172"), "the server's port");
}

fn a_chain_over_olsr_sends_hellos_and_tcs_before_data() {
    let spec = chain(3).olsr(olsr::Config::rfc3626()).bulk(0, 3, ns2_tcp(8)).from(20.0).seconds(21);
    let file = capture(&spec);
    let decoded = tshark::assert_well_formed(file.path());
    assert!(has(&decoded, "wlan:llc:ip:udp:olsr") && has(&decoded, "wlan:llc:ip:tcp"));
    let messages = field(&file, &["olsr.message_type", "ip.dst", "ip.ttl", "udp.dstport", "olsr.vtime"]);
    assert!(messages.iter().all(|row| row[1..4] == ["255.255.255.255", "1", "698"]));
    assert!(messages.iter().any(|row| (&row[0][..], &row[4][..]) == ("1", "6")), "HELLO, alone");
    assert!(messages.iter().any(|row| row[0].split(',').any(|kind| kind == "2")), "TC");
    // n3 hears of n0 what only n1 says, and n1 is two hops away.
    let tc = field(&file, &["olsr.ansn", "olsr.origin_addr", "olsr.hop_count", "frame.interface_name"]);
    assert!(tc.iter().any(|row| row[1].contains("10.0.0.2") && row[2].contains('1') && row[3] == "n3"));
}

fn a_chain_over_dsr_requests_its_route_and_includes_it_in_every_packet() {
    let away = walk(&[(0.0, 600.0, 0.0), (3.0, 600.0, 0.0), (3.5, 600.0, 3000.0)]);
    let spec = chain(2).wireless_node(away).dsr(dsr::Config::rfc4728()).bulk(0, 3, ns2_tcp(8)).seconds(8);
    let file = capture(&spec);
    let decoded = tshark::assert_well_formed(file.path());
    assert!(has(&decoded, "wlan:llc:ip:dsr") && has(&decoded, "wlan:llc:ip:dsr:tcp"));
    let option = |kind: &str, names: [&str; 2]| {
        let rows = field(&file, &["dsr.option.type", names[0], names[1], "ip.ttl", "ip.dst"]);
        rows.into_iter().filter(|row| row[0].split(',').any(|one| one == kind)).collect::<Vec<_>>()
    };
    let requests = option("1", ["dsr.option.rreq.targetaddress", "dsr.option.rreq.address"]);
    assert!(
        requests.iter().any(|row| row[1..5] == ["10.0.0.4", "", "1", "255.255.255.255"]),
        "neighbours first"
    );
    assert!(requests.iter().any(|row| row[2] == "10.0.0.2,10.0.0.3"), "what has passed it on");
    let replies = option("2", ["dsr.option.rrep.address", "dsr.option.srcrt.segsleft"]);
    assert!(replies.iter().any(|row| row[1] == "10.0.0.2,10.0.0.3,10.0.0.4" && row[4] == "10.0.0.1"));
    let routes = option("96", ["dsr.option.srcrt.segsleft", "tcp.srcport"]);
    for left in ["2", "1", "0"] {
        assert!(routes.iter().any(|row| row[1] == left && row[2] == "49152"), "{left} to go");
    }
    let errors = option("3", ["dsr.option.err.unreachablenode", "dsr.option.err.src"]);
    assert!(errors.iter().any(|row| row[1] == "10.0.0.4" && row[2] == "10.0.0.3"));
}

fn arp_replies_precede_data() {
    let spec = chain(1).bulk(0, 1, ns2_tcp(4)).seconds(1);
    let file = capture(&spec.radio(|radio| radio.address_resolution = AddressResolution::Arp));
    let decoded = tshark::assert_well_formed(file.path());
    assert!(has(&decoded, "wlan:llc:arp") && has(&decoded, "wlan:llc:ip:tcp"));
    let names = ["arp.opcode", "arp.src.proto_ipv4", "arp.dst.proto_ipv4", "arp.src.hw_mac", "wlan.ra"];
    let rows = field(&file, &names);
    assert_eq!(
        (&rows[0][..3], &rows[0][4][..]),
        (["1", "10.0.0.1", "10.0.0.2"].map(String::from).as_slice(), "ff:ff:ff:ff:ff:ff")
    );
    let reply = rows.iter().find(|row| row[0] == "2").expect("an answer");
    assert_eq!((&reply[1][..], &reply[2][..]), ("10.0.0.2", "10.0.0.1"));
    assert_eq!(reply[4], rows[0][3], "to whoever asked");
}

fn timestamps_are_monotonic_and_ttls_decrease() {
    let spec = chain(3).aodv(aodv::Config::rfc3561()).bulk(0, 3, ns2_tcp(8)).seconds(2);
    let file = capture(&spec);
    tshark::assert_well_formed(file.path());
    let times = field(&file, &["frame.time_epoch"]);
    let times: Vec<f64> = times.iter().map(|row| row[0].parse().expect("a number")).collect();
    assert!(times.is_sorted());
    let ttls = field(&file, &["tcp.srcport", "ip.ttl", "frame.interface_name"]);
    // What the client sends leaves n0 with 64 and is heard from n2 at n3 with 62.
    let client = |row: &&Vec<String>| row[0] == "49152";
    assert!(ttls.iter().filter(client).filter(|row| row[2] == "n0").any(|row| row[1] == "64"));
    assert!(ttls.iter().filter(client).filter(|row| row[2] == "n3").all(|row| row[1] == "62"));
}

fn a_capture_with_drops_is_well_formed_and_has_the_reasons() {
    let spec = standing(&[(0.0, 0.0), (200.0, 0.0), (0.0, 200.0)])
        .wireless_node(walk(&[(0.0, 400.0, 0.0), (2.0, 400.0, 0.0), (4.0, 3000.0, 0.0)]))
        .aodv(aodv::Config { net_diameter: 4, ..aodv::Config::rfc3561() })
        .bulk(0, 3, ns2_tcp(8).with_sack())
        .cbr(2, 3, 512, Duration::from_millis(5))
        .seconds(8);
    let file = capture(&spec);
    let decoded = tshark::assert_well_formed(file.path());
    assert!(has(&decoded, "wlan:llc:ip:udp:data"), "datagrams to the discard port are data and nothing else");
    let comments = field(&file, &["frame.comment", "wlan.ra"]);
    let mut reasons: Vec<&str> = comments.iter().map(|row| row[0].as_str()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in ["link failure", "interface queue full", "route discovery failed"] {
        assert!(reasons.contains(&reason), "{reason} is not among {reasons:?}");
    }
    assert!(comments.iter().all(|row| row[1] == "00:00:00:00:00:00"), "a dropped packet is for no one");
}

fn a_base_station_has_an_interface_of_each_kind() {
    let spec = chain(1)
        .wired_node()
        .link(link(1, 2, 500_000, Duration::from_millis(20), 3))
        .bulk(0, 2, ns2_tcp(32))
        .cbr(2, 0, 700, Duration::from_millis(100))
        .seconds(3);
    let file = capture(&spec);
    let decoded = tshark::assert_well_formed(file.path());
    for protocols in ["wlan:llc:ip:tcp", "wlan:llc:ip:udp:data", "raw:ip:tcp", "raw:ip:udp:data"] {
        assert!(has(&decoded, protocols), "{protocols}");
    }
    let rows = tshark::fields(file.path(), &["frame.interface_name", "frame.protocols", "frame.comment"]);
    for row in &rows {
        let wired = row[0] != "n0" && row[0] != "n1";
        assert_eq!(wired, row[1].starts_with("raw"), "{row:?}");
    }
    let dropped: Vec<_> = rows.iter().filter(|row| !row[2].is_empty()).collect();
    assert!(!dropped.is_empty());
    assert!(dropped.iter().all(|row| row[0] == "n1 (wired)" && row[2] == "interface queue full"));
}

fn an_outage_causes_an_icmp_error_about_a_segment() {
    let cut = OutageSpec {
        from: NodeId(2),
        to: NodeId(1),
        start: Instant::from_millis(1500),
        end: Instant::from_millis(2500),
        blocks: OutageEffect::Frames,
    };
    let spec = chain(2).elfn().bulk(0, 2, ns2_tcp(8)).seconds(3).change(|spec| spec.outages.push(cut));
    let file = capture(&spec);
    let decoded = tshark::assert_well_formed(file.path());
    assert!(has(&decoded, "wlan:llc:ip:icmp:ip:tcp"));
    let names = ["icmp.type", "icmp.code", "tcp.srcport", "icmp.checksum.status"];
    let rows = field(&file, &names);
    assert!(rows.iter().all(|row| *row == ["3", "1", "49152", "1"]), "{rows:?}");
}

fn segments_of_present_day_tcp_with_all_options_are_well_formed() {
    let spec = chain(2)
        .radio(|radio| radio.mac = hopline_radio::mac::Config::dot11b())
        .bulk(0, 2, hopline_transport::tcp::Config::modern())
        .transfer(2, 0, hopline_transport::tcp::Config::modern(), 5_000)
        .seconds(2);
    let file = capture(&spec);
    tshark::assert_well_formed(file.path());
    let options = field(&file, &["tcp.options.timestamp.tsval", "tcp.options.wscale.shift", "tcp.flags.fin"]);
    assert!(options.iter().any(|row| !row[1].is_empty()), "a SYN with window scale");
    assert!(options.iter().any(|row| row[2] == "1" || row[2] == "True"), "a FIN");
}
