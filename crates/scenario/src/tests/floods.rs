//! `[[notice_flood]]`.

use super::*;
use hopline_sim::spec::{ForgedField, NormalizedPb, NoticeFloodSpec};

const FLOOD: &str = "[[notice_flood]]\nnode = \"n1\"\n";

fn from_n1() -> NoticeFloodSpec {
    NoticeFloodSpec {
        node: NodeId(1),
        start: Instant::ZERO,
        stop: Instant::FAR_FUTURE,
        interval: Duration::from_millis(100),
        normalized_pb: NormalizedPb::ONE,
        lifetime: Duration::from_millis(65_535),
        forge: ForgedField::Nothing,
    }
}

#[test]
fn a_flood_requests_the_maximum_by_default() {
    assert_eq!(spec(CHAIN, &[]).notice_flood_attackers, []);
    let text = format!("{CHAIN}{FLOOD}");
    assert_eq!(spec(&text, &[]).notice_flood_attackers, [from_n1()]);
    let settings = [
        "notice_flood.0.start_s=2",
        "notice_flood.0.stop_s=3.5",
        "notice_flood.0.interval_s=0.01",
        "notice_flood.0.normalized_pb=0.5",
        "notice_flood.0.lifetime_s=0",
        "notice_flood.0.forge=sufferer",
    ];
    let [start, stop] = [2000, 3500].map(Instant::from_millis);
    let expected = NoticeFloodSpec {
        start,
        stop,
        interval: Duration::from_millis(10),
        normalized_pb: NormalizedPb::of(0.5),
        lifetime: Duration::ZERO,
        forge: ForgedField::StarvedNodes,
        ..from_n1()
    };
    assert_eq!(spec(&text, &settings).notice_flood_attackers, [expected]);
}

#[test]
fn there_may_be_several_floods() {
    let both = spec(&format!("{CHAIN}{FLOOD}{FLOOD}forge = \"sender\"\n"), &[]).notice_flood_attackers;
    assert_eq!(both, [from_n1(), NoticeFloodSpec { forge: ForgedField::Senders, ..from_n1() }]);
}
