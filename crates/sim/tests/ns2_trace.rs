//! The trace in ns-2's format: its lines, and what scripts make of them.

use crate::support::last_hop::{last_hop, linux};
use crate::support::{SpecBuilder, chain, grid, link, ns2_tcp};
use core::num::NonZeroU64;
use hopline_core::{Duration, Instant};
use hopline_proxy::snoop;
use hopline_routing::{aodv, dsr, olsr};
use hopline_sim::spec::{AddressResolution, ExchangeSpec, ProxyKind, RandomVariable};
use hopline_sim::trace::{Ns2Tracer, PcapTracer};
use hopline_sim::{Outcome, Spec, World, simulate};
use std::collections::BTreeSet;

fn trace(spec: &Spec) -> (Outcome, Vec<String>) {
    let mut world = World::new(spec, 1, Ns2Tracer::new(Vec::new(), spec));
    world.run_until(Instant::ZERO + spec.duration);
    let (outcome, trace) = world.finish();
    let text = String::from_utf8(trace.finish().expect("memory takes everything")).expect("ASCII");
    (outcome, text.lines().map(str::to_owned).collect())
}

/// The fields of a line, as awk splits it.
fn fields(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Lines of this event, layer and reason.
fn count(lines: &[String], event: &str, layer: &str, reason: &str) -> u64 {
    let matches = |line: &&String| {
        let f = fields(line);
        (f[0], f[3], f[4]) == (event, layer, reason)
    };
    lines.iter().filter(matches).count() as u64
}

#[test]
fn the_first_lines_are_those_that_ns2_writes() {
    // ns-2.35 writes the same, but for ports, the hop limit it starts with, and the options of TCP, 8 bytes of a SYN.
    let (_, lines) = trace(&chain(1).bulk(0, 1, ns2_tcp(1)).from(1.0).seconds(2));
    let expected = [
        "s 1.000000000 _0_ AGT  --- 0 tcp 40 [0 0 0 0] ------- [0:49152 1:9 64 0] [0 0] 0 0",
        "r 1.000000000 _0_ RTR  --- 0 tcp 48 [0 0 0 0] ------- [0:49152 1:9 64 0] [0 0] 0 0",
        "s 1.000000000 _0_ RTR  --- 0 tcp 48 [0 0 0 0] ------- [0:49152 1:9 64 1] [0 0] 0 0",
    ];
    assert_eq!(lines[..3], expected);
    assert!(lines[3].contains(" _0_ MAC  --- 0 RTS 44 [") && lines[3].ends_with(" 1 0 0] "), "{}", lines[3]);
    let data =
        lines.iter().find(|line| line.starts_with("s ") && line.contains("MAC  --- 0 tcp")).expect("data");
    assert!(data.contains(" tcp 106 [13a 1 0 800] ------- [0:49152 1:9 64 1] [0 0] 0 0"), "{data}");
    let answer = lines.iter().find(|line| line.contains("_1_ AGT")).expect("the SYN arrives");
    assert!(
        answer.ends_with(" AGT  --- 0 tcp 40 [0 0 0 0] ------- [0:49152 1:9 64 0] [0 0] 0 0"),
        "{answer}"
    );
    let ack = lines.iter().find(|line| line.starts_with("s ") && line.contains("_1_ AGT")).expect("SYN-ACK");
    assert!(ack.contains(" AGT  --- 1 ack 40 ") && ack.ends_with(" [0 1] 0 0"), "{ack}");
}

#[test]
fn routing_messages_are_written_with_their_numbers() {
    let (_, lines) = trace(&chain(2).aodv(aodv::Config::ns2_235()).bulk(0, 2, ns2_tcp(4)).seconds(2));
    let find = |what: &str| lines.iter().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}"));
    let request = find("(REQUEST)");
    assert!(
        request.contains(" _0_ RTR  --- 0 AODV ") && request.contains(" ------- [0:255 -1:255 "),
        "{request}"
    );
    assert!(request.contains("[0x2 0 ") || request.contains("[0x2 1 "), "{request}");
    assert!(find("MAC  --- 0 AODV").contains(" ffffffff 0 800]"));
    assert!(find("(REPLY)").contains("[0x4 "));
    assert!(lines.iter().any(|line| line.starts_with("f ") && line.contains(" _1_ RTR  --- 0 tcp ")));
}

#[test]
fn olsr_is_written_with_its_header_fields() {
    let spec = chain(2).olsr(olsr::Config::rfc3626()).bulk(0, 2, ns2_tcp(4)).from(15.0).seconds(16);
    let (_, lines) = trace(&spec);
    let olsr: Vec<_> = lines.iter().filter(|line| line.contains(" RTR  --- 0 OLSR ")).collect();
    // The first HELLO: 28 bytes of headers, 20 of OLSR, one of its own type, from n0 to all nodes.
    let first = olsr.iter().find(|line| line.starts_with("s ") && line.contains(" _0_ ")).expect("a HELLO");
    assert!(
        first.contains("OLSR 48 [0 0 0 0] ------- [0:255 -1:255 1 0] [0] [0x1 0 0 1 0] (OLSR)"),
        "{first}"
    );
    // What n0 or n2 hears of n1, and what n1 passes on for the others: TC messages with 255 hops to go.
    assert!(olsr.iter().any(|line| line.contains(" [0x2 1 ") && line.contains(" 255 0]")));
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("f ") && line.contains(" _1_ RTR ") && line.contains(" tcp "))
    );
}

#[test]
fn dsr_is_written_as_ns2_writes_it_and_data_behind_it_as_data() {
    let (_, lines) = trace(&chain(2).dsr(dsr::Config::ns2()).bulk(0, 2, ns2_tcp(4)).seconds(2));
    let find = |what: &str| lines.iter().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}"));
    // 20 bytes of IP header, 4 of DSR's, 8 of the request: no node has passed it on.
    let request = find(" _0_ RTR  --- 0 DSR 32 ");
    assert!(request.ends_with("[0:255 -1:255 1 0] 1 [1 1] [0 1 0 0->0] [0 0 0 0->0]"), "{request}");
    assert!(lines.iter().any(|line| line.contains(" DSR ") && line.contains(" [1 0 3 0->2] ")), "a reply");
    assert!(find(" _1_ RTR  --- ").starts_with(['r', 's', 'f']));
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("f ") && line.contains(" _1_ RTR  ---") && line.contains(" tcp "))
    );
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("r ") && line.contains(" _2_ AGT  ---") && line.contains(" tcp "))
    );
}

/// Throughput as an awk script over the trace has it: distinct bytes that agents received, over the time from the start
/// to the last of them. Field 8 of AGT lines less 40 bytes, segments told apart by field 18.
fn throughput_bps(lines: &[String], kind: &str, headers: u64, start_s: f64) -> f64 {
    let mut seen = std::collections::BTreeSet::new();
    let (mut bytes, mut last) = (0, start_s);
    for f in lines.iter().map(|line| fields(line)) {
        if (f[0], f[3], f[6]) == ("r", "AGT", kind) && seen.insert(f[17].to_owned()) {
            let payload = f[7].parse::<u64>().expect("a size") - headers;
            if payload > 0 {
                bytes += payload;
                last = f[1].parse::<f64>().expect("a time");
            }
        }
    }
    bytes as f64 * 8.0 / (last - start_s)
}

#[test]
fn throughput_by_awk_script_equals_goodput() {
    let spec =
        grid(3).aodv(aodv::Config::ns2_235()).transfer(0, 8, ns2_tcp(16), 300_000).from(1.0).seconds(60);
    let (outcome, lines) = trace(&spec);
    let goodput = outcome.flows[0].goodput_bps();
    assert!(outcome.flows[0].retransmissions > 0, "some of it came twice");
    let found = throughput_bps(&lines, "tcp", 40, 1.0);
    assert!((found / goodput - 1.0).abs() < 1e-9, "{found} {goodput}");
    let spec = chain(3).cbr(0, 3, 500, Duration::from_millis(50)).from(1.0).seconds(21);
    let (outcome, lines) = trace(&spec);
    let received = throughput_bps(&lines, "cbr", 0, 1.0) / 8.0;
    let bytes = outcome.flows[0].bytes_received as f64;
    assert!((received * 20.0 / bytes - 1.0).abs() < 0.01, "{received} {bytes}");
}

#[test]
fn line_counts_match_the_outcome() {
    let web = ExchangeSpec {
        request_bytes: RandomVariable::Constant(300.0),
        response_bytes: RandomVariable::Constant(9000.0),
        think_s: RandomVariable::Constant(0.1),
        transactions: NonZeroU64::new(1000),
    };
    let spec = chain(4).cbr(0, 4, 1000, Duration::from_millis(8)).exchange(4, 1, ns2_tcp(32), web);
    let (outcome, lines) = trace(&spec.seconds(5));
    let sum =
        |of: &dyn Fn(&hopline_sim::outcome::NodeOutcome) -> u64| outcome.nodes.iter().map(of).sum::<u64>();
    let sent: u64 = outcome.flows.iter().map(|flow| flow.data.sent + flow.reverse.sent).sum();
    let received: u64 = outcome.flows.iter().map(|flow| flow.data.received + flow.reverse.received).sum();
    assert_eq!(count(&lines, "s", "AGT", "---"), sent);
    assert!((received..received + 5).contains(&count(&lines, "r", "AGT", "---")), "copies are told again");
    assert_eq!(count(&lines, "s", "MAC", "---"), sum(&|node| node.frames.total()));
    assert_eq!(count(&lines, "D", "IFQ", "---"), sum(&|node| node.drops.queue_full));
    assert_eq!(count(&lines, "D", "MAC", "RET"), sum(&|node| node.drops.retry_limit));
    assert!(sum(&|node| node.drops.queue_full) > 10 && sum(&|node| node.drops.retry_limit) > 0);
    let times: Vec<f64> = lines.iter().map(|line| fields(line)[1].parse().expect("a time")).collect();
    assert!(times.is_sorted());
}

#[test]
fn two_tracers_at_once_change_nothing_and_see_the_same() {
    let spec = chain(1)
        .wired_node()
        .link(link(1, 2, 500_000, Duration::from_millis(20), 3))
        .bulk(0, 2, ns2_tcp(32))
        .seconds(3);
    let pcap = Some(PcapTracer::new(Vec::new(), &spec).expect("memory takes everything"));
    let mut world = World::new(&spec, 1, (pcap, Some(Ns2Tracer::new(Vec::new(), &spec))));
    world.run_until(Instant::ZERO + spec.duration);
    let (outcome, (pcap, ns2)) = world.finish();
    let text = ns2.map(|trace| trace.finish().expect("memory takes everything")).expect("it was there");
    let (alone, lines) = trace(&spec);
    assert_eq!(outcome, alone);
    assert_eq!(outcome, simulate(&spec, 1));
    assert_eq!(String::from_utf8(text).expect("ASCII").lines().collect::<Vec<_>>(), lines);
    assert!(pcap.expect("it was there").finish().expect("memory takes everything").len() > 10_000);
    // The queue before the wire overflows, and the wire has lines of its own.
    assert_eq!(count(&lines, "D", "IFQ", "---"), outcome.nodes[1].drops.queue_full);
    assert!(lines.iter().any(|line| line.starts_with("s ") && line.contains("_2_ MAC  --- ")));
}

#[test]
fn packets_that_applications_send_are_numbered_without_holes() {
    // Scripts take the highest number of what was sent for the count of it, whatever routing and middleboxes send beside.
    let with_aodv =
        chain(3).aodv(aodv::Config::ns2_235()).cbr(0, 3, 512, Duration::from_millis(100)).seconds(10);
    let with_arp = chain(2).change(|spec| {
        spec.radio.as_mut().expect("there are radios").address_resolution = AddressResolution::Arp;
    });
    for spec in [with_aodv, with_arp.bulk(0, 2, ns2_tcp(4)).seconds(2)] {
        let (_, lines) = trace(&spec);
        let sent = lines.iter().map(|line| fields(line)).filter(|f| (f[0], f[3]) == ("s", "AGT"));
        let numbers: Vec<usize> = sent.map(|f| f[5].parse().expect("a number")).collect();
        assert!(numbers.len() > 50);
        assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>());
        for line in
            lines.iter().map(|line| fields(line)).filter(|f| ["AODV", "ARP", "RTS", "ACK"].contains(&f[6]))
        {
            assert_eq!(line[5], "0", "{line:?}");
        }
    }
}

#[test]
fn a_packet_keeps_its_number_where_a_middlebox_rewrites_it() {
    let snoop = ProxyKind::Snoop(snoop::Config::modern());
    let (_, lines) = trace(&last_hop(Some(snoop)).transfer(0, 2, linux(), 500_000));
    let of = |event| {
        let lines = lines.iter().map(|line| fields(line)).filter(move |f| (f[0], f[3]) == (event, "AGT"));
        lines.map(|f| (f[5].to_owned(), f[6].to_owned())).collect::<Vec<_>>()
    };
    let sent: BTreeSet<_> = of("s").into_iter().collect();
    let arrived = of("r");
    // What the middlebox sends again has no number of its own: 0, which the first packet has too.
    let unknown = arrived.iter().filter(|packet| packet.0 != "0" && !sent.contains(packet));
    assert_eq!(unknown.count(), 0);
    assert!(arrived.iter().filter(|(number, kind)| kind == "ack" && number != "0").count() > 50);
}
