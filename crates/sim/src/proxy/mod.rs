//! Machines in the path of TCP, seated: what they see of the packets that pass, and what their verdicts come to.

mod ack_pacing;
mod border;
mod d_proxy;
mod fast_retransmit;
mod filter;
mod handover;
mod link;
mod split;

use self::border::Border;
use crate::ids::WireEnd;
use crate::neighborhood::Neighborhood;
use crate::seat::{Seat, Sitter};
use crate::spec::{CellsSpec, MobileSide, PairKind, PairSpec, ProxyKind, ProxySpec, Spec};
pub(crate) use ack_pacing::AckPacingSeat;
pub(crate) use d_proxy::DProxySeat;
pub(crate) use fast_retransmit::FastRetransmitSeat;
pub(crate) use filter::{FilterSeat, Kept};
use handover::Handovers;
use hopline_core::{NodeId, Purpose, Stream};
use hopline_proxy::ack_pacing::AckPacing;
use hopline_proxy::arq::Arq;
use hopline_proxy::dproxy::opaque::Opaque;
use hopline_proxy::dproxy::{self, DProxy};
use hopline_proxy::fast_retransmit::FastRetransmit;
use hopline_proxy::mtcp::Mtcp;
use hopline_proxy::nack::Nacks;
use hopline_proxy::snoop;
use hopline_proxy::split::{Split, Unknown};
use link::Across;
pub(crate) use link::{Crossing, LinkSeat};
pub(crate) use split::SplitSeat;

/// Returns the middleboxes in the path of packets at `node`, from its interfaces inward.
pub(crate) fn seats(spec: &Spec, node: NodeId, key: (u64, u64)) -> Vec<Seat> {
    let radio = spec.radio.as_ref().filter(|_| spec.nodes[node.index()].is_wireless());
    let neighborhood = radio.and_then(|radio| Neighborhood::of(radio, node, key));
    let here = (0..).zip(&spec.proxies).filter(|(_, proxy)| proxy.node == node);
    let proxies = here.map(|proxy| sitter(proxy, spec.cells.as_ref(), key));
    let links = link_ends(spec, node, key.1);
    let pairs = pair_ends(spec, node, key.1);
    let all = neighborhood.map(Sitter::NeighborhoodRed).into_iter().chain(links).chain(pairs).chain(proxies);
    let all = all.chain(told(spec, node)).chain(fast_retransmit(spec, node));
    all.map(Seat::new).collect()
}

/// Creates the middlebox that `spec`, number `number` of them all, describes.
pub(crate) fn sitter(
    (number, spec): (u64, &ProxySpec),
    cells: Option<&CellsSpec>,
    (seed, run): (u64, u64),
) -> Sitter {
    let border = Border::new(spec, cells);
    match &spec.kind {
        ProxyKind::Snoop(config) => {
            // Packets are lengths here: what real ones would take bounds nothing.
            let machine = snoop::windowed(snoop::Config { kept_bytes: u64::MAX, ..*config });
            Sitter::Snoop(Box::new(FilterSeat::new(machine, border)))
        }
        ProxyKind::Mtcp(config) => Sitter::Mtcp(Box::new(FilterSeat::new(Mtcp::new(*config), border))),
        ProxyKind::Nack(config) => Sitter::Nacks(Box::new(FilterSeat::new(Nacks::new(*config), border))),
        ProxyKind::AckPacing(config) => {
            Sitter::AckPacing(Box::new(AckPacingSeat::new(AckPacing::new(*config), border)))
        }
        ProxyKind::Split(config) => {
            let random = Stream::keyed(seed, run, number, Purpose::Proxy);
            let follows = config.unknown != Unknown::Reset;
            let handovers = follows.then(|| Handovers::new(spec.node.ipv4()));
            Sitter::Split(Box::new(SplitSeat::new(Split::new(**config, random), border, handovers)))
        }
    }
}

/// Returns the ends at `node` of links that repair their own losses.
pub(crate) fn link_ends(spec: &Spec, node: NodeId, run: u64) -> impl Iterator<Item = Sitter> {
    (0..).zip(&spec.links).filter_map(move |(link, of)| {
        let config = of.arq?;
        let (side, far) = if of.a == node {
            (0, of.b)
        } else if of.b == node {
            (1, of.a)
        } else {
            return None;
        };
        // No end restarts here: any number will do for an epoch.
        let machine = Arq::new(config, run as u16);
        let across = Across::Wire(WireEnd { link, side });
        Some(Sitter::Arq(Box::new(LinkSeat::new(machine, across, node, far))))
    })
}

/// Returns the middleboxes at `node` of pairs at both ends of links.
pub(crate) fn pair_ends(spec: &Spec, node: NodeId, run: u64) -> impl Iterator<Item = Sitter> {
    spec.pairs.iter().filter_map(move |PairSpec { ends: [a, b], kind }| {
        let far = if *a == node {
            *b
        } else if *b == node {
            *a
        } else {
            return None;
        };
        Some(match kind {
            PairKind::DProxy(config) => {
                let config = dproxy::Config { local: node.ipv4().into(), peer: far.ipv4().into(), ..*config };
                Sitter::DProxy(Box::new(DProxySeat::new(DProxy::new(config), node, far)))
            }
            PairKind::Opaque(config) => {
                let machine = Opaque::new(*config, run as u16);
                Sitter::Opaque(Box::new(LinkSeat::new(machine, Across::Neighbour, node, far)))
            }
        })
    })
}

/// Returns the middlebox of `node` if it is a host that a station asks for packets that it has sent: it keeps
/// them.
pub(crate) fn told(spec: &Spec, node: NodeId) -> Option<Sitter> {
    let asks = |proxy: &&ProxySpec| matches!(proxy.kind, ProxyKind::Nack(_));
    let stands = |proxy: &ProxySpec| proxy.node == node;
    let is_served = |proxy: &ProxySpec| match &proxy.mobile {
        MobileSide::Radios => spec.nodes[node.index()].is_wireless(),
        MobileSide::Nodes(hosts) => hosts.contains(&node),
    };
    let mut asking = spec.proxies.iter().filter(asks);
    if spec.proxies.iter().any(stands) || !asking.any(is_served) {
        return None;
    }
    let machine = snoop::windowed(snoop::Config::told());
    Some(Sitter::Snoop(Box::new(FilterSeat::new(machine, Border::of_host(node.ipv4())))))
}

/// Returns the middlebox of `node` if it is a mobile host that asks again after a handoff.
pub(crate) fn fast_retransmit(spec: &Spec, node: NodeId) -> Option<Sitter> {
    let mobile = spec.cells.as_ref()?.mobiles.iter().find(|mobile| mobile.node == node)?;
    let machine = FastRetransmit::new(mobile.fast_retransmit?);
    Some(Sitter::FastRetransmit(Box::new(FastRetransmitSeat::new(machine, node.ipv4()))))
}
