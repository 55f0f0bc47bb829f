//! Negotiation, numbering, and what options cost.

use super::{ADSN, ALL, NOTHING, connected, in_flight, out_of_order, peer, stats, with_door};
use crate::tcp::tests::script::{Script, mss_1000_sack, plain, segment};
use crate::tcp::{
    AckOrder, Config, DataOrder, Detection, DoorConfig, DoorResponse, Endpoint, OptionOffer, Ports,
};
use hopline_core::{Length, LinkId, Seq32, StateMachine};
use hopline_wire::tcp::{DoorFeatures, DoorOption, Options};

const FEEDBACK: DoorFeatures = DoorFeatures { adsn: false, tpsn: false, feedback: true };

fn with_detection(detection: Detection) -> Config {
    Config {
        timestamps: OptionOffer::Offered,
        ..with_door(DoorConfig { detection, ..DoorConfig::all(1.0, 1.0) })
    }
}

/// Returns the offer in the SYN of an endpoint.
fn offered(config: Config) -> Option<DoorOption> {
    let mut s = Script::new(config);
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.last.unwrap().options.door
}

/// Returns the answer in the SYN-ACK of an endpoint to this offer, and the room for data afterwards.
fn answered(config: Config, offer: DoorFeatures) -> (Option<DoorOption>, u32) {
    let mut s = Script::new(config);
    s.endpoint.listen().unwrap();
    s.receive(segment(0).syn().options(peer(offer)));
    s.transmits();
    (s.last.unwrap().options.door, s.endpoint.effective_mss())
}

#[test]
fn a_syn_offers_what_the_detection_needs() {
    let tpsn = DoorFeatures { tpsn: true, ..FEEDBACK };
    for (detection, expected) in [
        (Detection::Both(AckOrder::Adsn, DataOrder::Tpsn), Some(ALL)),
        (Detection::Sender(AckOrder::Adsn), Some(ADSN)),
        (Detection::Receiver(DataOrder::Tpsn), Some(tpsn)),
        (Detection::Receiver(DataOrder::Timestamps), Some(FEEDBACK)),
        (Detection::Sender(AckOrder::Numbers), None),
    ] {
        assert_eq!(offered(with_detection(detection)), expected.map(DoorOption::Offer), "{detection:?}");
    }
    assert_eq!(offered(plain()), None);
}

#[test]
fn a_syn_ack_accepts_the_common_features() {
    let offer = |features| Some(DoorOption::Offer(features));
    let all = with_door(DoorConfig::all(1.0, 1.0));
    assert_eq!(answered(all, ALL), (offer(ALL), 1000));
    assert_eq!(answered(all, ADSN), (offer(ADSN), 1000));
    assert_eq!(
        answered(all, FEEDBACK),
        (offer(FEEDBACK), 1008),
        "feedback costs nothing until there is some"
    );
    assert_eq!(answered(all, NOTHING), (None, 1008));
    assert_eq!(answered(with_door(DoorConfig::sender_detection(1.0, 1.0)), ALL), (offer(ADSN), 1000));
    let tpsn = DoorFeatures { tpsn: true, ..NOTHING };
    assert_eq!(answered(all, tpsn), (None, 1008), "numbers that nobody would tell about");
    assert_eq!(answered(Config { door: None, ..all }, ALL), (None, 1008));
}

#[test]
fn a_peer_without_the_option_sees_none() {
    let mut s = in_flight(Config { mss: 1000, ..with_door(DoorConfig::all(1.0, 1.0)) }, NOTHING);
    assert_eq!(s.endpoint.effective_mss(), 1000);
    s.receive(segment(1).ack(1).data(10));
    assert_eq!(s.transmits(), ". 10001 ack 11", "not one option");
}

#[test]
fn an_option_that_was_not_negotiated_is_ignored() {
    let mut s = in_flight(Config { mss: 1000, ..with_door(DoorConfig::all(1.0, 1.0)) }, NOTHING);
    s.receive(segment(1).ack(1).adsn(5));
    s.receive(segment(1).ack(1).adsn(3));
    s.receive(segment(1).ack(1).door(out_of_order()));
    assert_eq!(stats(&s), Default::default());
}

#[test]
fn the_adsn_counts_equal_acknowledgments() {
    let mut s = connected(with_door(DoorConfig::all(1.0, 1.0)), peer(ALL));
    assert_eq!(s.last.unwrap().options.door, Some(DoorOption::Report(adsn(0))));
    s.receive(segment(1).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1001 adsn 0");
    for n in 1..=3 {
        s.receive(segment(1001 + 1000 * n).ack(1).data(1000));
        assert!(s.transmits().ends_with(&format!("adsn {n}")));
    }
    s.receive(segment(1001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 5001 adsn 0", "a new number");
    s.receive(segment(1).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 5001 adsn 1", "whatever brings it about");
}

#[test]
fn the_adsn_wraps_around() {
    let mut s = connected(with_door(DoorConfig::all(1.0, 1.0)), peer(ALL));
    for _ in 0..255 {
        s.receive(segment(2001).ack(1).data(1000));
        s.transmits();
    }
    assert_eq!(s.last.unwrap().options.door, Some(DoorOption::Report(adsn(255))));
    s.receive(segment(2001).ack(1).data(1000));
    s.transmits();
    assert_eq!(s.last.unwrap().options.door, Some(DoorOption::Report(adsn(0))));
}

#[test]
fn the_tpsn_counts_data_packets_with_retransmissions() {
    let mut s = connected(with_door(DoorConfig::receiver_detection(1.0, 1.0)), peer(ALL));
    s.endpoint.send(s.now, Length(2000)).unwrap();
    assert_eq!(s.transmits(), ". 1:1001 ack 1 tpsn 0; . 1001:2001 ack 1 tpsn 1");
    assert_eq!(s.run_until(400), "400: . 1:1001 ack 1 tpsn 2");
    s.receive(segment(1).ack(2001));
    s.receive(segment(1).ack(2001).data(10));
    assert_eq!(s.transmits(), ". 2001 ack 11", "an acknowledgment is no data packet");
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.transmits(), "F 2001 ack 11", "nor is a FIN");
}

#[test]
fn both_ends_may_send_data() {
    let mut s = connected(with_door(DoorConfig::all(1.0, 1.0)), peer(ALL));
    s.endpoint.send(s.now, Length(1500)).unwrap();
    assert_eq!(s.transmits(), ". 1:1001 ack 1 adsn 1 tpsn 0; . 1001:1501 ack 1 adsn 2 tpsn 1");
    let mut packet = adsn(0);
    packet.tpsn = Some(0);
    s.receive(segment(1).ack(1001).data(700).door(packet));
    assert_eq!(s.transmits(), ". 1501 ack 701 adsn 0");
    s.endpoint.send(s.now, Length(10)).unwrap();
    assert_eq!(s.transmits(), ". 1501:1511 ack 701 adsn 1 tpsn 2");
    assert_eq!(stats(&s), Default::default());
}

#[test]
fn the_option_and_sack_blocks_fit_together() {
    for (timestamps, blocks, header) in [(OptionOffer::NotOffered, 3, 56), (OptionOffer::Offered, 2, 60)] {
        let mut options = peer(ALL);
        options.timestamps = (timestamps == OptionOffer::Offered).then_some(Default::default());
        let mut s = connected(Config { timestamps, ..with_door(DoorConfig::all(1.0, 1.0)) }, options);
        for n in 1..=6 {
            s.receive(segment(2000 * n).ack(1).data(10).ts(0, 0));
        }
        s.endpoint.send(s.now, Length(1 << 20)).unwrap();
        s.transmits();
        let segment = s.last.unwrap();
        assert_eq!((segment.options.sack.len(), segment.header_len()), (blocks, header));
        assert_eq!(segment.wire_len(), 20 + 1008, "a packet keeps its size");
    }
}

#[test]
fn feedback_takes_option_space_only_when_sent() {
    let mut options = peer(FEEDBACK);
    options.timestamps = Some(Default::default());
    let mut s = connected(with_detection(Detection::Receiver(DataOrder::Timestamps)), options);
    assert_eq!(s.endpoint.effective_mss(), 996, "timestamps");
    s.receive(segment(11).ack(1).data(10).ts(9, 0));
    s.receive(segment(1).ack(1).data(10).ts(8, 0));
    s.endpoint.send(s.now, Length(1 << 20)).unwrap();
    assert!(s.transmits().starts_with(". 1:989 ack 21 ooo; . 989:1985 ack 21; "));
    assert_eq!(stats(&s).data_events, 1);
}

#[test]
fn the_56_settings_of_the_study_are_valid() {
    let settings: Vec<DoorConfig> = DoorConfig::study_settings().collect();
    assert_eq!(settings.len(), 56);
    for (i, &door) in settings.iter().enumerate() {
        assert!(!settings[..i].contains(&door), "{door:?}");
        assert_eq!(Config::ns2_2001().with_sack().with_door(Some(door)).validate(), Ok(()));
    }
    let count = |which: fn(&DoorConfig) -> bool| settings.iter().filter(|d| which(d)).count();
    assert_eq!(count(|d| d.response.t1().is_none()), 4, "IR");
    assert_eq!(count(|d| d.response.t2().is_none()), 4, "TD");
    assert_eq!(count(|d| matches!(d.detection, Detection::Sender(_))), 16, "SD");
    assert_eq!(count(|d| matches!(d.detection, Detection::Receiver(_))), 16, "RD");
}

#[test]
fn invalid_settings_are_refused() {
    let all = DoorConfig::all(1.0, 1.0);
    let timestamps = DoorConfig { detection: Detection::Receiver(DataOrder::Timestamps), ..all };
    for (door, field) in [
        (DoorConfig::all(0.0, 1.0), "door.t1"),
        (DoorConfig::temporary_disabling(f64::NAN), "door.t1"),
        (DoorConfig { response: DoorResponse::Recover { t2: -1.0 }, ..all }, "door.t2"),
        (DoorConfig::all(1.0, 1000.5), "door.t2"),
        (DoorConfig { feedback_acks: 0, ..all }, "door.feedback_acks"),
        (timestamps, "timestamps"),
    ] {
        let config = plain().with_door(Some(door));
        assert_eq!(config.validate().unwrap_err().field, field);
        let made = Endpoint::<Length>::new(config, Ports { local: 1, remote: 2 }, Seq32(0));
        assert_eq!(made.err().map(|e| e.field), Some(field));
    }
    assert_eq!(
        Config { timestamps: OptionOffer::Offered, ..plain().with_door(Some(timestamps)) }.validate(),
        Ok(())
    );
    let fraction = DoorConfig::all(0.25, 1000.0);
    assert_eq!(plain().with_door(Some(fraction)).validate(), Ok(()));
}

#[test]
fn it_works_with_every_recovery() {
    for config in [plain().with_reno(), plain().with_newreno(), plain().with_sack()] {
        for door in DoorConfig::study_settings() {
            let mut s = Script::new(config.with_door(Some(door)));
            s.endpoint.listen().unwrap();
            s.receive(
                segment(0).syn().options(Options { door: Some(DoorOption::Offer(ALL)), ..mss_1000_sack() }),
            );
            s.transmits();
            s.receive(segment(1).ack(1));
            assert_eq!(s.state(), crate::tcp::State::Established);
        }
    }
}

#[test]
fn a_reset_half_open_connection_forgets_the_negotiation() {
    let mut s = Script::new(with_door(DoorConfig::all(1.0, 1.0)));
    s.endpoint.listen().unwrap();
    s.receive(segment(0).syn().options(peer(ALL)));
    s.transmits();
    s.receive(segment(1).rst());
    s.receive(segment(0).syn().options(peer(NOTHING)));
    s.transmits();
    assert_eq!(s.last.unwrap().options.door, None);
    s.receive(segment(1).ack(1));
    s.receive(segment(1).ack(1).data(5));
    assert_eq!(s.transmits(), ". 1 ack 6");
}

#[test]
fn malformed_options_are_counted_and_the_segment_is_taken() {
    let mut s = in_flight(with_door(DoorConfig::all(1.0, 1.0)), ALL);
    let mut hears = |segment: crate::tcp::tests::script::SegmentBuilder, door| {
        let options = Options { door: Some(door), ..Options::default() };
        s.receive(segment.options(options));
    };
    hears(segment(1).ack(1001), DoorOption::Malformed);
    hears(segment(1).ack(2001).data(5), DoorOption::Offer(ALL));
    assert_eq!(s.endpoint.unacknowledged(), (1 << 40) - 2000);
    assert_eq!((stats(&s).malformed, s.endpoint.stats().bytes_received), (2, 5));
    assert_eq!(stats(&s).ack_events, 0);
    let mut s = Script::new(with_door(DoorConfig::all(1.0, 1.0)));
    s.endpoint.listen().unwrap();
    s.receive(segment(0).syn().options(Options { door: Some(DoorOption::Malformed), ..mss_1000_sack() }));
    s.transmits();
    assert_eq!(s.last.unwrap().options.door, None, "nothing to agree upon");
    assert_eq!(stats(&s).malformed, 1);
}

#[test]
fn a_wrapped_tpsn_raises_no_event() {
    let config = Config {
        initial_window: crate::tcp::InitialWindow::Segments(1),
        ..with_door(DoorConfig::all(1.0, 1.0))
    };
    let (mut a, mut b) = (Script::new(config), Script::new(config));
    // The ports of dialogues are the endpoint's: turn them round for the second one.
    let turned = |mut segment: hopline_wire::tcp::Segment<Length>| {
        core::mem::swap(&mut segment.src_port, &mut segment.dst_port);
        segment
    };
    b.endpoint.listen().unwrap();
    a.endpoint.connect(a.now).unwrap();
    a.endpoint.send(a.now, Length(70_000_000)).unwrap();
    let mut wrapped = 0;
    loop {
        let mut quiet = true;
        while let Some(segment) = a.endpoint.poll_transmit(a.now) {
            if let Some(DoorOption::Report(report)) = segment.options.door {
                wrapped += u32::from(report.tpsn == Some(0));
            }
            b.endpoint.handle_packet(b.now, LinkId::ONLY, turned(segment));
            b.read_all();
            quiet = false;
        }
        while let Some(segment) = b.endpoint.poll_transmit(b.now) {
            a.endpoint.handle_packet(a.now, LinkId::ONLY, turned(segment));
            quiet = false;
        }
        if quiet {
            break;
        }
    }
    assert_eq!((a.endpoint.unacknowledged(), wrapped), (0, 2));
    assert_eq!((stats(&a), stats(&b)), Default::default());
}

fn adsn(n: u8) -> hopline_wire::tcp::DoorReport {
    hopline_wire::tcp::DoorReport { adsn: Some(n), ..Default::default() }
}
