//! The peer of dialogues with a TCP endpoint.
//!
//! What the endpoint sends is told as text with sequence numbers relative to the initial ones, so that dialogues read
//! the same whatever these are: `S 0`, `. 1:1461 ack 1`, `F 1 ack 1`, `R 1`; a pure ACK is `. 1 ack 1`, with TCP-DOOR
//! `. 1 ack 1 adsn 0 tpsn 5 ooo`. `A`, `W` and `E` are AE, CWR and ECE, with AccECN the bits of the ACE field; `ECT1` is
//! ECT(1), `ECT` ECT(0).

use crate::tcp::{Config, Endpoint, Event, Ports, State};
use hopline_core::{Instant, Length, Payload, Seq32};
use hopline_testkit::packet::flag_letters;
use hopline_wire::ipv4::Ecn;
use hopline_wire::tcp::{
    AccEcnCounters, AccEcnOption, AccEcnOrder, DoorOption, DoorReport, Flags, Options, SackBlock, Segment,
    Timestamps,
};

pub(super) const LOCAL: u16 = 1000;
pub(super) const REMOTE: u16 = 2000;

pub(super) type Script = crate::test_script::Script<Peer>;

pub(super) struct Peer {
    /// Initial sequence numbers: the endpoint's and its own.
    pub(super) iss: Seq32,
    pub(super) irs: Seq32,
    /// Window field it announces.
    pub(super) window: u16,
}

/// A segment of the peer, under construction. Sequence numbers are relative.
#[derive(Clone)]
pub(super) struct SegmentBuilder {
    pub(super) seq: i64,
    pub(super) ack: Option<i64>,
    pub(super) len: u64,
    pub(super) flags: Flags,
    pub(super) window: Option<u16>,
    pub(super) options: Options,
    pub(super) sack: Vec<(i64, i64)>,
    pub(super) ecn: Ecn,
}

pub(super) fn segment(seq: i64) -> SegmentBuilder {
    SegmentBuilder {
        seq,
        ack: None,
        len: 0,
        flags: Flags(0),
        window: None,
        options: Options::default(),
        sack: Vec::new(),
        ecn: Ecn::NotCapable,
    }
}

impl SegmentBuilder {
    pub(super) fn ack(mut self, ack: i64) -> Self {
        self.ack = Some(ack);
        self.flags |= Flags::ACK;
        self
    }
    pub(super) fn data(mut self, len: u64) -> Self {
        self.len = len;
        self
    }
    pub(super) fn syn(mut self) -> Self {
        self.flags |= Flags::SYN;
        self
    }
    pub(super) fn fin(mut self) -> Self {
        self.flags |= Flags::FIN;
        self
    }
    pub(super) fn rst(mut self) -> Self {
        self.flags |= Flags::RST;
        self
    }
    /// ECN-Echo.
    pub(super) fn ece(mut self) -> Self {
        self.flags |= Flags::ECE;
        self
    }
    /// Congestion window reduced.
    pub(super) fn cwr(mut self) -> Self {
        self.flags |= Flags::CWR;
        self
    }
    /// Marked on the way.
    pub(super) fn marked(mut self) -> Self {
        self.ecn = Ecn::CongestionExperienced;
        self
    }
    /// AE, CWR and ECE as a number.
    pub(super) fn ace(mut self, ace: u8) -> Self {
        self.flags |= Flags::from_ace(ace);
        self
    }
    /// ECN field on arrival.
    pub(super) fn ecn(mut self, ecn: Ecn) -> Self {
        self.ecn = ecn;
        self
    }
    /// AccECN option of order 1, of a receiver that has counted so many bytes beyond the initial values.
    pub(super) fn counted(mut self, e1b: u32, ceb: u32) -> Self {
        let counters = AccEcnCounters { e0b: 1, ceb, e1b: 1 + e1b };
        self.options.acc_ecn = Some(AccEcnOption::new(AccEcnOrder::One, counters, 3));
        self
    }
    pub(super) fn win(mut self, window: u16) -> Self {
        self.window = Some(window);
        self
    }
    pub(super) fn sack(mut self, left: i64, right: i64) -> Self {
        self.sack.push((left, right));
        self
    }
    pub(super) fn ts(mut self, value: u32, echo: u32) -> Self {
        self.options.timestamps = Some(Timestamps { value, echo });
        self
    }
    pub(super) fn door(mut self, report: DoorReport) -> Self {
        self.options.door = Some(DoorOption::Report(report));
        self
    }
    pub(super) fn adsn(self, adsn: u8) -> Self {
        self.door(DoorReport { adsn: Some(adsn), ..DoorReport::default() })
    }
    pub(super) fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }
}

/// Options of a peer that offers MSS 1000 and nothing else: round numbers in the dialogues.
pub(super) fn mss_1000() -> Options {
    Options { mss: Some(1000), ..Options::default() }
}

/// The same with SACK.
pub(super) fn mss_1000_sack() -> Options {
    Options { sack_permitted: true, ..mss_1000() }
}

/// Plain parameters for dialogues: segments of 1000 bytes, no timestamps, no window scaling, ACK every segment,
/// no Nagle, NewReno, ten segments initial window.
pub(super) fn plain() -> Config {
    let mut config = Config::modern().with_newreno();
    config.mss = 1000;
    config.timestamps = crate::tcp::OptionOffer::NotOffered;
    config.window_scale = crate::tcp::OptionOffer::NotOffered;
    config.ack_policy = crate::tcp::AckPolicy::EverySegment;
    config.nagle = crate::tcp::Nagle::Off;
    config.initial_window = crate::tcp::InitialWindow::Segments(10);
    config.growth = crate::tcp::Growth::PerAck;
    config.growth_condition = crate::tcp::GrowthCondition::Always;
    config.receive_buffer = 60_000;
    config
}

impl Script {
    /// A closed endpoint at time 0, with sequence numbers that soon wrap around on both sides.
    pub(super) fn new(config: Config) -> Self {
        let (iss, irs) = (Seq32(u32::MAX - 1500), Seq32(u32::MAX - 700));
        let ports = Ports { local: LOCAL, remote: REMOTE };
        let endpoint = Endpoint::new(config, ports, iss).unwrap();
        Self::new_between(endpoint, Peer { iss, irs, window: 60_000 })
    }

    /// Connected actively at 100 ms after a round trip of 100 ms; the peer offers `options`.
    pub(super) fn connected_with(config: Config, options: Options) -> Self {
        let mut s = Self::new(config);
        s.endpoint.connect(s.now).unwrap();
        assert!(s.transmits().starts_with("S 0"));
        s.now = Instant::from_millis(100);
        s.receive(segment(0).syn().ack(1).options(options));
        assert_eq!(s.transmits(), ". 1 ack 1");
        assert_eq!(s.events(), [Event::Connected]);
        assert_eq!(s.endpoint.state(), State::Established);
        s
    }

    pub(super) fn connected(config: Config) -> Self {
        Self::connected_with(config, mss_1000())
    }

    /// Connected, with so many bytes handed over and sent at 100 ms.
    pub(super) fn sending(config: Config, bytes: u64) -> Self {
        let mut s = Self::connected(config);
        s.endpoint.send(s.now, Length(bytes)).unwrap();
        s
    }
}

impl crate::test_script::Peer for Peer {
    type Endpoint = Endpoint<Length>;
    type Segment = SegmentBuilder;

    fn complete(&self, p: SegmentBuilder) -> Segment<Length> {
        let mut options = p.options;
        for (left, right) in p.sack {
            let at = |n: i64| self.iss + n as u32;
            options.sack.push(SackBlock { left: at(left), right: at(right) });
        }
        Segment {
            src_port: REMOTE,
            dst_port: LOCAL,
            seq: self.irs + p.seq as u32,
            ack: p.ack.map_or(Seq32(0), |a| self.iss + a as u32),
            flags: p.flags,
            window: p.window.unwrap_or(self.window),
            urgent: 0,
            options,
            ecn: p.ecn,
            payload: Length(p.len),
        }
    }

    fn describe(&self, segment: &Segment<Length>) -> String {
        let ours = |s: Seq32| s.distance_from(self.iss);
        let theirs = |s: Seq32| s.distance_from(self.irs);
        let flags = flag_letters(Flags(segment.flags.0 & !Flags::PSH.0));
        let capable = match segment.ecn {
            Ecn::NotCapable => "",
            Ecn::Capable1 => "ECT1 ",
            Ecn::Capable0 | Ecn::CongestionExperienced => "ECT ",
        };
        let mut text = format!("{capable}{flags} {}", ours(segment.seq));
        let len = segment.payload.len();
        if len > 0 {
            text.push_str(&format!(":{}", ours(segment.seq) + len as i32));
        }
        if segment.flags.contains(Flags::ACK) {
            text.push_str(&format!(" ack {}", theirs(segment.ack)));
        }
        for b in segment.options.sack.as_slice() {
            text.push_str(&format!(" sack {}-{}", theirs(b.left), theirs(b.right)));
        }
        if let Some(option) = segment.options.acc_ecn {
            let [first, last] = match option.order() {
                AccEcnOrder::Zero => [("e0b", option.e0b()), ("e1b", option.e1b())],
                AccEcnOrder::One => [("e1b", option.e1b()), ("e0b", option.e0b())],
            };
            for (name, value) in [first, ("ceb", option.ceb()), last] {
                value.inspect(|n| text.push_str(&format!(" {name} {n}")));
            }
        }
        if let Some(DoorOption::Report(report)) = segment.options.door {
            report.adsn.inspect(|n| text.push_str(&format!(" adsn {n}")));
            report.tpsn.inspect(|n| text.push_str(&format!(" tpsn {n}")));
            text.push_str(if report.out_of_order { " ooo" } else { "" });
        }
        text
    }
}
