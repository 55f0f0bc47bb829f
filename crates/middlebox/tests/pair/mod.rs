//! Local retransmission at both ends of a lossy link, with the kernel's packets.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod dproxy;
mod measured;
mod opaque;
mod world;

use hopline_harness::{Need, Test};
use hopline_testkit::namespace::LINK;

/// Requirements of all tests here.
const NEEDS: [Need; 2] = [LINK, Need::Program("ip")];

pub(crate) fn tests() -> Vec<Test> {
    let tunnels = hopline_harness::tests!(NEEDS;
        opaque::all_bytes_arrive_with_every_repair_scheme,
        opaque::cubic_doubles_its_goodput_at_5_percent_loss,
        opaque::packets_take_other_routes_while_the_peer_is_absent,
        opaque::a_transfer_survives_the_loss_of_either_end,
        opaque::without_the_peer_only_one_greeting_a_second_is_sent,
        opaque::another_key_is_counted,
        opaque::errors_are_named,
        opaque::datagrams_up_to_the_mtu_and_pings_cross_over_ipv4_and_ipv6,
        opaque::the_ends_may_have_ipv6_addresses,
        opaque::replayed_datagrams_are_rejected,
        opaque::a_flood_of_forgeries_is_counted_or_rejected,
    );
    let queue = [Need::Program("iptables"), Need::Of(dproxy::why_no_queue)];
    let with_queue: Vec<Need> = NEEDS.into_iter().chain(queue).collect();
    let readers = hopline_harness::tests!(with_queue.clone();
        dproxy::all_bytes_arrive_despite_losses,
        dproxy::cubic_doubles_its_goodput_at_5_percent_loss,
        dproxy::packets_are_not_delayed,
        dproxy::a_transfer_survives_the_loss_of_either_end,
        dproxy::without_the_peer_traffic_passes,
        dproxy::another_key_is_counted_and_traffic_passes,
    );
    let over_ipv6: Vec<Need> = with_queue.iter().cloned().chain([Need::Program("ip6tables")]).collect();
    let over_ipv6 = hopline_harness::tests!(over_ipv6.clone();
        dproxy::all_bytes_arrive_over_ipv6_between_link_local_addresses,
        dproxy::cubic_over_ipv6_doubles_its_goodput_at_5_percent_loss,
    );
    let long = {
        let needs: Vec<Need> = with_queue.into_iter().chain([Need::Program("tc")]).collect();
        Test::new("goodput", needs, measured::goodput).long()
    };
    tunnels.into_iter().chain(readers).chain(over_ipv6).chain([long]).collect()
}
