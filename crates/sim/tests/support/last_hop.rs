//! A wired path, and a bad last hop.

use super::{SpecBuilder, link, wired};
use hopline_core::{Duration, NodeId};
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_sim::Spec;
use hopline_sim::spec::{MobileSide, ProxyKind, ProxySpec};
use hopline_transport::tcp;

/// A server, a base station, and a mobile host behind a link that loses 3 of 100 packets, either way, and overflows.
pub(crate) fn last_hop(proxy: Option<ProxyKind>) -> Spec {
    let mut lossy = link(1, 2, 10_000_000, Duration::from_millis(2), 30);
    lossy.errors = [ErrorModel::PacketLoss(Probability::new(0.03).expect("a probability")); 2];
    let spec =
        wired(3).link(link(0, 1, 100_000_000, Duration::from_millis(20), 100)).link(lossy).seconds(120);
    let mobile = MobileSide::Nodes([NodeId(2)].into());
    let proxies = proxy.map(|kind| ProxySpec { node: NodeId(1), mobile, kind }).into_iter().collect();
    spec.change(|spec| spec.proxies = proxies)
}

pub(crate) fn linux() -> tcp::Config {
    tcp::Config::linux().with_sack()
}
