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
        opaque::every_byte_crosses_whatever_is_lost_and_however_it_is_repaired,
        opaque::cubic_has_twice_of_what_it_has_without_at_5_percent,
        opaque::packets_take_other_routes_while_the_other_end_is_not_there,
        opaque::a_transfer_outlives_either_end,
        opaque::without_the_other_end_nothing_crosses_and_a_greeting_a_second_is_all_that_is_said,
        opaque::another_key_is_counted,
        opaque::mistakes_are_named,
        opaque::datagrams_up_to_the_mtu_cross_over_ipv4_and_ipv6_and_pings_are_answered,
        opaque::the_ends_may_have_addresses_of_ipv6,
        opaque::what_somebody_plays_back_brings_nothing,
        opaque::a_flood_of_forgeries_from_100_000_sources_is_counted_or_not_heard,
    );
    let queue = [Need::Program("iptables"), Need::Of(dproxy::why_no_queue)];
    let with_queue: Vec<Need> = NEEDS.into_iter().chain(queue).collect();
    let readers = hopline_harness::tests!(with_queue.clone();
        dproxy::every_byte_crosses_whatever_is_lost,
        dproxy::cubic_has_twice_of_what_it_has_without_at_5_percent,
        dproxy::packets_need_not_wait,
        dproxy::a_transfer_outlives_either_end,
        dproxy::without_the_other_end_traffic_passes,
        dproxy::another_key_is_counted_and_traffic_passes,
    );
    let over_ipv6: Vec<Need> = with_queue.iter().cloned().chain([Need::Program("ip6tables")]).collect();
    let over_ipv6 = hopline_harness::tests!(over_ipv6.clone();
        dproxy::every_byte_of_ipv6_crosses_between_ends_with_link_local_addresses,
        dproxy::cubic_over_ipv6_has_twice_of_what_it_has_without_at_5_percent,
    );
    let long = {
        let needs: Vec<Need> = with_queue.into_iter().chain([Need::Program("tc")]).collect();
        Test::new("goodput", needs, measured::goodput).long()
    };
    tunnels.into_iter().chain(readers).chain(over_ipv6).chain([long]).collect()
}
