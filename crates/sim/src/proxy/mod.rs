//! Machines in the path of TCP, seated: what they see of the packets that pass, and what their verdicts come to.

mod ack_pacing;
mod border;
mod d_proxy;
mod fast_retransmit;
mod filter;
mod link;
mod split;
mod state_transfer;

use self::border::NetworkBorder;
use crate::ids::WireEnd;
use crate::middlebox_slot::{MiddleboxKind, MiddleboxSlot};
use crate::neighborhood::Neighborhood;
use crate::spec::{CellsSpec, MobileSide, PairKind, PairSpec, ProxyKind, ProxySpec, Spec};
pub(crate) use ack_pacing::AckPacingMiddlebox;
pub(crate) use d_proxy::DProxyMiddlebox;
pub(crate) use fast_retransmit::FastRetransmitMiddlebox;
pub(crate) use filter::{CachedSegment, FilterMiddlebox};
use hopline_core::{NodeId, Purpose, RandomStream};
use hopline_proxy::ack_pacing::AckPacing;
use hopline_proxy::arq::Arq;
use hopline_proxy::dproxy::opaque::Opaque;
use hopline_proxy::dproxy::{self, DProxy};
use hopline_proxy::fast_retransmit::FastRetransmit;
use hopline_proxy::mtcp::Mtcp;
use hopline_proxy::nack::NackStation;
use hopline_proxy::snoop;
use hopline_proxy::split::{Split, UnknownConnections};
use link::CrossedLink;
pub(crate) use link::{CrossingPacket, LinkMiddlebox};
pub(crate) use split::SplitMiddlebox;
use state_transfer::StateTransfers;

/// Returns the middleboxes in the path of packets at `node`, from its interfaces inward.
pub(crate) fn middleboxes(spec: &Spec, node: NodeId, key: (u64, u64)) -> Vec<MiddleboxSlot> {
    let radio = spec.radio.as_ref().filter(|_| spec.nodes[node.index()].is_wireless());
    let neighborhood = radio.and_then(|radio| Neighborhood::from_spec(radio, node, key));
    let here = (0..).zip(&spec.proxies).filter(|(_, proxy)| proxy.node == node);
    let proxies = here.map(|proxy| new_middlebox(proxy, spec.cells.as_ref(), key));
    let links = link_ends(spec, node, key.1);
    let pairs = pair_ends(spec, node, key.1);
    let all =
        neighborhood.map(MiddleboxKind::NeighborhoodRed).into_iter().chain(links).chain(pairs).chain(proxies);
    let all = all.chain(nack_host_middlebox(spec, node)).chain(fast_retransmit_middlebox(spec, node));
    all.map(MiddleboxSlot::new).collect()
}

/// Creates the middlebox that `spec`, number `number` of them all, describes.
pub(crate) fn new_middlebox(
    (number, spec): (u64, &ProxySpec),
    cells: Option<&CellsSpec>,
    (seed, run): (u64, u64),
) -> MiddleboxKind {
    let border = NetworkBorder::new(spec, cells);
    match &spec.kind {
        ProxyKind::Snoop(config) => {
            // Packets are lengths here: what real ones would take bounds nothing.
            let machine = snoop::windowed(snoop::Config { max_cached_bytes: u64::MAX, ..*config });
            MiddleboxKind::Snoop(Box::new(FilterMiddlebox::new(machine, border)))
        }
        ProxyKind::Mtcp(config) => {
            MiddleboxKind::Mtcp(Box::new(FilterMiddlebox::new(Mtcp::new(*config), border)))
        }
        ProxyKind::Nack(config) => {
            MiddleboxKind::Nacks(Box::new(FilterMiddlebox::new(NackStation::new(*config), border)))
        }
        ProxyKind::AckPacing(config) => {
            MiddleboxKind::AckPacing(Box::new(AckPacingMiddlebox::new(AckPacing::new(*config), border)))
        }
        ProxyKind::Split(config) => {
            let random = RandomStream::keyed(seed, run, number, Purpose::Proxy);
            let follows = config.unknown != UnknownConnections::Reset;
            let handovers = follows.then(|| StateTransfers::new(spec.node.ipv4()));
            MiddleboxKind::Split(Box::new(SplitMiddlebox::new(
                Split::new(**config, random),
                border,
                handovers,
            )))
        }
    }
}

/// Returns the ends at `node` of links that repair their own losses.
pub(crate) fn link_ends(spec: &Spec, node: NodeId, run: u64) -> impl Iterator<Item = MiddleboxKind> {
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
        let across = CrossedLink::Wire(WireEnd { link, side });
        Some(MiddleboxKind::Arq(Box::new(LinkMiddlebox::new(machine, across, node, far))))
    })
}

/// Returns the middleboxes at `node` of pairs at both ends of links.
pub(crate) fn pair_ends(spec: &Spec, node: NodeId, run: u64) -> impl Iterator<Item = MiddleboxKind> {
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
                MiddleboxKind::DProxy(Box::new(DProxyMiddlebox::new(DProxy::new(config), node, far)))
            }
            PairKind::Opaque(config) => {
                let machine = Opaque::new(*config, run as u16);
                MiddleboxKind::Opaque(Box::new(LinkMiddlebox::new(
                    machine,
                    CrossedLink::Neighbour,
                    node,
                    far,
                )))
            }
        })
    })
}

/// Returns the middlebox of `node` if it is a host that a station asks for packets that it has sent: it keeps
/// them.
pub(crate) fn nack_host_middlebox(spec: &Spec, node: NodeId) -> Option<MiddleboxKind> {
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
    let machine = snoop::windowed(snoop::Config::nack_host());
    Some(MiddleboxKind::Snoop(Box::new(FilterMiddlebox::new(machine, NetworkBorder::for_host(node.ipv4())))))
}

/// Returns the middlebox of `node` if it is a mobile host that asks again after a handoff.
pub(crate) fn fast_retransmit_middlebox(spec: &Spec, node: NodeId) -> Option<MiddleboxKind> {
    let mobile = spec.cells.as_ref()?.mobiles.iter().find(|mobile| mobile.node == node)?;
    let machine = FastRetransmit::new(mobile.fast_retransmit?);
    Some(MiddleboxKind::FastRetransmit(Box::new(FastRetransmitMiddlebox::new(machine, node.ipv4()))))
}
