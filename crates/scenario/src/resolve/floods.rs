//! `[[notice_flood]]`.

use super::super::schema::Section;
use super::super::source::Problem;
use super::{Names, instant, node_named, seconds};
use hopline_core::Instant;
use hopline_sim::spec::{Forge, Interface, NodeSpec, NormalizedPb, NoticeFloodSpec};

/// All of them, in the order of the file.
pub(super) fn resolve(
    scenario: Section<'_>,
    nodes: &[NodeSpec],
    names: &Names,
) -> Result<Vec<NoticeFloodSpec>, Problem> {
    scenario.sections("notice_flood").iter().map(|section| flood(section, nodes, names)).collect()
}

fn flood(section: &Section<'_>, nodes: &[NodeSpec], names: &Names) -> Result<NoticeFloodSpec, Problem> {
    let node = node_named(section, "node", names)?;
    let NodeSpec { name, .. } = &nodes[node.index()];
    if nodes[node.index()].interface() == Interface::Wired {
        return Err(Problem::new(format!("a flood of notices by `{name}`, which has no radio"))
            .at(section.origin_of("node"))
            .help("notices go over the air: name a wireless node"));
    }
    let start = instant(section, "start_s").expect("has a default");
    let stop = instant(section, "stop_s").unwrap_or(Instant::FAR_FUTURE);
    if stop <= start {
        return Err(Problem::new("the flood is over before it begins")
            .at(section.origin_of("stop_s"))
            .help(format!("stop_s must be above start_s = {}", start.as_secs_f64())));
    }
    Ok(NoticeFloodSpec {
        node,
        start,
        stop,
        interval: seconds(section, "interval_s").expect("has a default"),
        normalized_pb: NormalizedPb::of(section.number("normalized_pb").expect("has a default")),
        lifetime: seconds(section, "lifetime_s").expect("has a default"),
        forge: match section.word("forge").expect("has a default") {
            "sender" => Forge::Senders,
            "sufferer" => Forge::Sufferers,
            _off => Forge::Nothing,
        },
    })
}
