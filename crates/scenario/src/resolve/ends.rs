//! Ends of a flow: nodes chosen by name, by place, or at random.

use super::super::keys;
use super::super::schema::Section;
use super::{Names, unknown_node};
use hopline_config::source::Problem;
use hopline_core::{Instant, NodeId, Purpose, RandomStream};
use hopline_radio::mobility::Position;
use hopline_sim::spec::NodeSpec;
use std::collections::BTreeSet;

/// The node that comes last, whatever it is called.
const LAST_NODE: &str = "last";

/// Nodes of the network.
#[derive(Clone, Copy)]
pub(super) struct Network<'a> {
    pub(super) names: &'a Names,
    pub(super) nodes: &'a [NodeSpec],
}

/// Source and destination.
pub(super) type Endpoints = (NodeId, NodeId);

/// Description of one end in a section.
enum Endpoint {
    Node(NodeId),
    NearestTo(Position),
}

impl Network<'_> {
    /// Returns the ends of the flow of `section`, or of its pairs; `draws` is the stream that these are drawn
    /// from.
    pub(super) fn endpoints(
        self,
        section: &Section<'_>,
        draws: RandomStream,
    ) -> Result<Vec<Endpoints>, Problem> {
        let [src, dst] = [self.endpoint(section, "src")?, self.endpoint(section, "dst")?];
        if let Some(pairs) = section.integer("pairs") {
            return self.pairs(section, pairs, src, dst, draws);
        }
        let need = |end: Option<Endpoint>, key: &str| {
            end.ok_or_else(|| {
                let start = section.origin.span.start;
                Problem::new(format!("a flow without `{key}`"))
                    .at(&hopline_config::source::Origin { span: start..start, ..section.origin.clone() })
                    .help(format!(
                        "add {key}, the name of a node, or pairs, a number of flows between random nodes"
                    ))
            })
        };
        let (src, dst) = match (need(src, "src")?, need(dst, "dst")?) {
            (Endpoint::Node(src), Endpoint::Node(dst)) => (src, dst),
            (Endpoint::NearestTo(place), Endpoint::Node(dst)) => (self.nearest(place, Some(dst)), dst),
            (Endpoint::Node(src), Endpoint::NearestTo(place)) => (src, self.nearest(place, Some(src))),
            (Endpoint::NearestTo(from), Endpoint::NearestTo(to)) => {
                let src = self.nearest(from, None);
                (src, self.nearest(to, Some(src)))
            }
        };
        if src == dst {
            return Err(Problem::new("a flow from a node to itself")
                .at(section.origin_of("dst"))
                .help("src and dst are different nodes"));
        }
        Ok(vec![(src, dst)])
    }

    fn endpoint(self, section: &Section<'_>, key: &'static str) -> Result<Option<Endpoint>, Problem> {
        if let Some(name) = section.word(key) {
            let last = || (name == LAST_NODE).then(|| NodeId(self.count() - 1));
            let node = self.names.get(name).copied().or_else(last);
            let node = node.ok_or_else(|| unknown_node(name, section.origin_of(key), self.names))?;
            return Ok(Some(Endpoint::Node(node)));
        }
        let place = section.section(key);
        let position = || Position::new(place.get(keys::place::X_M), place.get(keys::place::Y_M));
        Ok(place.is_given().then(|| Endpoint::NearestTo(position())))
    }

    fn count(self) -> u32 {
        u32::try_from(self.nodes.len()).expect("a network has at most keys::NODES")
    }

    /// Returns the node that is nearest to `place` at the beginning and not `other`; of several the first.
    /// `other` itself if there is none but it.
    fn nearest(self, place: Position, other: Option<NodeId>) -> NodeId {
        let all = (0..).map(NodeId).zip(self.nodes).filter(|(id, _)| Some(*id) != other);
        let away = all.map(|(id, node)| (node.trajectory.position_at(Instant::ZERO).distance_m(place), id));
        let nearest = away.min_by(|(a, _), (b, _)| a.total_cmp(b));
        nearest.map(|(_, id)| id).or(other).unwrap_or(NodeId(0))
    }

    /// Returns `count` pairs, no two alike, of which one end may be the same in all.
    fn pairs(
        self,
        section: &Section<'_>,
        count: u64,
        src: Option<Endpoint>,
        dst: Option<Endpoint>,
        mut draws: RandomStream,
    ) -> Result<Vec<Endpoints>, Problem> {
        let node = |end: Endpoint| match end {
            Endpoint::Node(node) => node,
            Endpoint::NearestTo(place) => self.nearest(place, None),
        };
        let (src, dst) = (src.map(node), dst.map(node));
        if src.is_some() && dst.is_some() {
            return Err(Problem::new("`pairs` of a flow of which both ends are given")
                .at(section.origin_of("pairs"))
                .help("remove src, dst or pairs: what is not given is drawn"));
        }
        let nodes = u64::from(self.count());
        let others = nodes.saturating_sub(1);
        let possible = if src.or(dst).is_some() { others } else { nodes * others };
        if count > possible {
            return Err(Problem::new(format!("{count} different pairs, where there are {possible}"))
                .at(section.origin_of("pairs"))
                .help(format!("the network has {nodes} nodes; a pair is two of them, one way")));
        }
        let mut known = BTreeSet::new();
        let mut pairs = Vec::new();
        while (pairs.len() as u64) < count {
            let one = src.or(dst).unwrap_or_else(|| NodeId(draws.below(self.count())));
            // Any other node: those above `one` move down by one.
            let other = draws.below(self.count() - 1);
            let other = NodeId(other + u32::from(other >= one.0));
            let pair = if dst.is_some() { (other, one) } else { (one, other) };
            if known.insert(pair) {
                pairs.push(pair);
            }
        }
        Ok(pairs)
    }
}

/// Returns the stream of the pairs that begin with flow number `first`.
pub(super) fn draws(seed: u64, run: u64, first: usize) -> RandomStream {
    RandomStream::keyed(seed, run, first as u64, Purpose::Pairs)
}
