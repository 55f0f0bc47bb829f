//! `[[notice_flood]]`.

use super::super::keys;
use super::super::schema::Section;
use super::{Names, instant, instant_of, node_named, seconds_of};
use hopline_config::source::Problem;
use hopline_core::Instant;
use hopline_sim::spec::{Attachment, ForgedField, NodeSpec, NormalizedPb, NoticeFloodSpec};

/// Returns all of them, in the order of the file.
pub(super) fn resolve(
    scenario: Section<'_>,
    nodes: &[NodeSpec],
    names: &Names,
) -> Result<Vec<NoticeFloodSpec>, Problem> {
    scenario.sections("notice_flood").iter().map(|section| flood(section, nodes, names)).collect()
}

fn flood(section: &Section<'_>, nodes: &[NodeSpec], names: &Names) -> Result<NoticeFloodSpec, Problem> {
    let node = node_named(section, keys::notice_flood::NODE, names)?;
    let NodeSpec { name, .. } = &nodes[node.index()];
    if nodes[node.index()].attachment() == Attachment::Wired {
        return Err(Problem::new(format!("a flood of notices by `{name}`, which has no radio"))
            .at(section.origin_of("node"))
            .help("notices go over the air: name a wireless node"));
    }
    let start = instant_of(section, keys::notice_flood::START_S);
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
        interval: seconds_of(section, keys::notice_flood::INTERVAL_S),
        normalized_pb: NormalizedPb::of(section.get(keys::notice_flood::NORMALIZED_PB)),
        lifetime: seconds_of(section, keys::notice_flood::LIFETIME_S),
        forge: match section.get(keys::notice_flood::FORGE) {
            "sender" => ForgedField::Senders,
            "sufferer" => ForgedField::StarvedNodes,
            _off => ForgedField::Nothing,
        },
    })
}
