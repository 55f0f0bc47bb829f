//! `[[notice_flood]]`.

use super::*;
use hopline_sim::spec::{Forge, NormalizedPb, NoticeFloodSpec};

const FLOOD: &str = "[[notice_flood]]\nnode = \"n1\"\n";

fn from_n1() -> NoticeFloodSpec {
    NoticeFloodSpec {
        node: NodeId(1),
        start: Instant::ZERO,
        stop: Instant::FAR_FUTURE,
        interval: Duration::from_millis(100),
        normalized_pb: NormalizedPb::ONE,
        lifetime: Duration::from_millis(65_535),
        forge: Forge::Nothing,
    }
}

#[test]
fn a_flood_asks_for_everything_for_as_long_as_it_can_unless_it_says_otherwise() {
    assert_eq!(spec(CHAIN, &[]).notice_floods, []);
    let text = format!("{CHAIN}{FLOOD}");
    assert_eq!(spec(&text, &[]).notice_floods, [from_n1()]);
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
        forge: Forge::Sufferers,
        ..from_n1()
    };
    assert_eq!(spec(&text, &settings).notice_floods, [expected]);
}

#[test]
fn there_may_be_several() {
    let both = spec(&format!("{CHAIN}{FLOOD}{FLOOD}forge = \"sender\"\n"), &[]).notice_floods;
    assert_eq!(both, [from_n1(), NoticeFloodSpec { forge: Forge::Senders, ..from_n1() }]);
}
