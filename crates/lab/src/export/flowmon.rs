//! FlowMonitor XML in the format of ns-3's `SerializeToXmlFile`, for the scripts that read it.
//!
//! Each direction of a flow with packets is a flow of its own: ns-3 distinguishes flows by addresses, ports
//! and protocol. Histograms and probes are left out, as in ns-3 by default.

use hopline_sim::outcome::{FlowOutcome, PacketCounts};
use hopline_sim::spec::{FlowSpec, Transport};
use hopline_sim::{Outcome, Spec};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io::{self, Write};
use std::net::Ipv4Addr;

/// One flow of FlowMonitor.
struct Direction<'a> {
    id: usize,
    addresses: [Ipv4Addr; 2],
    ports: [u16; 2],
    /// IANA protocol number.
    protocol: u8,
    packets: &'a PacketCounts,
}

/// Writes the packets of every flow of `outcome`.
///
/// # Errors
///
/// Errors of `out`.
pub fn write(out: &mut dyn Write, spec: &Spec, outcome: &Outcome) -> io::Result<()> {
    let directions = directions(spec, outcome);
    let mut xml = Writer::new_with_indent(out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", None, None)))?;
    xml.create_element("FlowMonitor").write_inner_content(|xml| {
        xml.create_element("FlowStats")
            .write_inner_content(|xml| directions.iter().try_for_each(|direction| stats(xml, direction)))?;
        xml.create_element("Ipv4FlowClassifier").write_inner_content(|xml| {
            directions.iter().try_for_each(|direction| classify(xml, direction))
        })?;
        xml.create_element("Ipv6FlowClassifier").write_text_content(BytesText::new(""))?;
        xml.create_element("FlowProbes").write_text_content(BytesText::new(""))?;
        Ok(())
    })?;
    xml.into_inner().write_all(b"\n")
}

fn directions<'a>(spec: &Spec, outcome: &'a Outcome) -> Vec<Direction<'a>> {
    let both = |(flow, result): (&FlowSpec, &'a FlowOutcome)| {
        let protocol = if let Some(Transport::Tcp(_)) = flow.traffic.transport() { 6 } else { 17 };
        let [src, dst] = [flow.src.ipv4(), flow.dst.ipv4()];
        let [here, there] = result.ports;
        [
            ([src, dst], [here, there], protocol, &result.data),
            ([dst, src], [there, here], protocol, &result.reverse),
        ]
    };
    let all = spec.flows.iter().zip(&outcome.flows).flat_map(both);
    let seen = all.filter(|(_, _, _, packets)| packets.initially_in_flight + packets.sent > 0);
    seen.zip(1..)
        .map(|((addresses, ports, protocol, packets), id)| Direction {
            id,
            addresses,
            ports,
            protocol,
            packets,
        })
        .collect()
}

fn stats(xml: &mut Writer<&mut dyn Write>, direction: &Direction<'_>) -> io::Result<()> {
    let p = direction.packets;
    let instant = |at: Option<hopline_core::Instant>| time(at.map_or(0, |at| at.as_nanos()));
    let span = |time_: Option<hopline_core::Duration>| time(time_.map_or(0, |t| t.as_nanos()));
    let attributes = [
        ("flowId", direction.id.to_string()),
        ("timeFirstTxPacket", instant(p.first_sent)),
        ("timeFirstRxPacket", instant(p.first_received)),
        ("timeLastTxPacket", instant(p.last_sent)),
        ("timeLastRxPacket", instant(p.last_received)),
        ("delaySum", time(p.delays.sum().as_nanos())),
        ("jitterSum", time(p.jitter_sum.as_nanos())),
        ("lastDelay", span(p.last_delay)),
        ("maxDelay", span(p.delays.max())),
        ("minDelay", span(p.delays.min())),
        ("txBytes", p.sent_bytes.to_string()),
        ("rxBytes", p.received_bytes.to_string()),
        ("txPackets", p.sent.to_string()),
        ("rxPackets", p.received.to_string()),
        ("lostPackets", p.lost.to_string()),
        ("timesForwarded", p.forwarded.to_string()),
    ];
    let attributes = attributes.iter().map(|(name, value)| (*name, value.as_str()));
    xml.create_element("Flow").with_attributes(attributes).write_text_content(BytesText::new(""))?;
    Ok(())
}

fn classify(xml: &mut Writer<&mut dyn Write>, direction: &Direction<'_>) -> io::Result<()> {
    let attributes = [
        ("flowId", direction.id.to_string()),
        ("sourceAddress", direction.addresses[0].to_string()),
        ("destinationAddress", direction.addresses[1].to_string()),
        ("protocol", direction.protocol.to_string()),
        ("sourcePort", direction.ports[0].to_string()),
        ("destinationPort", direction.ports[1].to_string()),
    ];
    let attributes = attributes.iter().map(|(name, value)| (*name, value.as_str()));
    xml.create_element("Flow").with_attributes(attributes).write_inner_content(|xml| {
        let packets = direction.packets.sent.to_string();
        xml.create_element("Dscp")
            .with_attributes([("value", "0x0"), ("packets", packets.as_str())])
            .write_empty()?;
        Ok(())
    })?;
    Ok(())
}

/// Returns a time in ns-3's format.
fn time(nanos: u64) -> String {
    format!("+{nanos}.0ns")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{NoObserver, untraced};
    use hopline_config::source::Source;
    use hopline_scenario::Scenario;
    use quick_xml::Reader;
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::sync::Arc;

    /// Path and attributes of every element.
    type Elements = Vec<(String, BTreeMap<String, String>)>;

    fn elements(text: &str) -> Elements {
        let mut reader = Reader::from_str(text);
        let (mut path, mut found) = (Vec::new(), Vec::new());
        loop {
            let event = reader.read_event().expect("well-formed XML");
            let (Event::Start(tag) | Event::Empty(tag)) = &event else {
                match event {
                    Event::End(_) => drop(path.pop()),
                    Event::Eof => return found,
                    _ => {}
                }
                continue;
            };
            path.push(tag.name().as_ref().to_owned());
            let attribute = |a: quick_xml::events::attributes::Attribute<'_>| {
                (a.key.as_ref().to_owned(), a.value.into_owned())
            };
            let attributes = tag.attributes().map(|a| attribute(a.expect("a whole attribute"))).collect();
            found.push((path.join("/"), attributes));
            if matches!(event, Event::Empty(_)) {
                path.pop();
            }
        }
    }

    const MIXED: &str = "\
duration_s = 10
[nodes]
layout = \"chain\"
count = 4
spacing_m = 200
[radio]
[[flow]]
src = \"n0\"
dst = \"n3\"
[[flow]]
kind = \"cbr\"
src = \"n1\"
dst = \"n3\"
rate_kbps = 400
[[flow]]
kind = \"http\"
src = \"n3\"
dst = \"n1\"
think_s = 0.5
[[flow]]
src = \"n0\"
dst = \"n1\"
start_s = 50
";

    fn export() -> (Outcome, Elements) {
        let source = Arc::new(Source { name: "test.toml".into(), text: MIXED.into() });
        let scenario = Scenario::parse(source, PathBuf::new(), &[]).unwrap_or_else(|e| panic!("{e}"));
        let spec = scenario.spec(1).unwrap_or_else(|e| panic!("{e}"));
        let outcome = untraced(&spec, 1, &NoObserver).expect("nobody interrupts").outcome;
        let mut text = Vec::new();
        write(&mut text, &spec, &outcome).expect("memory takes everything");
        (outcome, elements(std::str::from_utf8(&text).expect("UTF-8")))
    }

    #[test]
    fn totals_of_the_file_match_the_run() {
        let (outcome, elements) = export();
        let stats: Vec<_> =
            elements.iter().filter(|(path, _)| path == "FlowMonitor/FlowStats/Flow").collect();
        assert_eq!(stats.len(), 5, "TCP twice, datagrams one way, what never started not at all");
        let sum =
            |name: &str| stats.iter().map(|(_, a)| a[name].parse::<u64>().expect("a count")).sum::<u64>();
        let packets: Vec<&PacketCounts> =
            outcome.flows.iter().flat_map(|flow| [&flow.data, &flow.reverse]).collect();
        let expected = |of: fn(&PacketCounts) -> u64| packets.iter().map(|p| of(p)).sum::<u64>();
        assert_eq!(sum("txPackets"), expected(|p| p.sent));
        assert_eq!(sum("rxPackets"), expected(|p| p.received));
        assert_eq!(sum("lostPackets"), expected(|p| p.lost));
        assert_eq!(sum("txBytes"), expected(|p| p.sent_bytes));
        assert_eq!(sum("rxBytes"), expected(|p| p.received_bytes));
        assert_eq!(sum("timesForwarded"), expected(|p| p.forwarded));
        assert!(sum("rxPackets") > 500 && sum("lostPackets") > 0);
        let nanos = |text: &str| {
            let number = text.strip_prefix('+').and_then(|t| t.strip_suffix("ns")).expect("+…ns");
            number.parse::<f64>().expect("a number") as u64
        };
        let delays: u64 = stats.iter().map(|(_, a)| nanos(&a["delaySum"])).sum();
        assert_eq!(delays, expected(|p| p.delays.sum().as_nanos()));
        assert!(stats.iter().all(|(_, a)| nanos(&a["minDelay"]) <= nanos(&a["maxDelay"])));
    }

    #[test]
    fn flows_are_classified_by_addresses_ports_and_protocol() {
        let (_, elements) = export();
        let flows: Vec<_> =
            elements.iter().filter(|(path, _)| path == "FlowMonitor/Ipv4FlowClassifier/Flow").collect();
        let tuple = |i: usize| {
            let a = &flows[i].1;
            ["sourceAddress", "sourcePort", "destinationAddress", "destinationPort", "protocol"]
                .map(|k| a[k].as_str())
        };
        assert_eq!(tuple(0), ["10.0.0.1", "49152", "10.0.0.4", "9", "6"]);
        assert_eq!(tuple(1), ["10.0.0.4", "9", "10.0.0.1", "49152", "6"]);
        assert_eq!(tuple(2), ["10.0.0.2", "49153", "10.0.0.4", "9", "17"]);
        // The client of a page is the destination of the data.
        assert_eq!(tuple(3), ["10.0.0.4", "9", "10.0.0.2", "49154", "6"]);
        let ids: Vec<&str> = flows.iter().map(|(_, a)| a["flowId"].as_str()).collect();
        assert_eq!(ids, ["1", "2", "3", "4", "5"]);
        for empty in ["FlowMonitor/Ipv6FlowClassifier", "FlowMonitor/FlowProbes"] {
            assert!(elements.iter().any(|(path, _)| path == empty), "{empty}");
        }
    }
}
