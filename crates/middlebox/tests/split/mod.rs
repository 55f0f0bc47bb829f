//! Split connections between hosts of their own, by the rules of the documentation.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod bounds;
mod crossing;
mod daemon;
mod ends;
mod hosts;
mod lossy;
mod measured;
mod moved;
mod moving;
mod peers;
mod relay;
mod router;
mod stations;

use hopline_harness::{Need, Test};
use hopline_linux::Namespace;
use hopline_testkit::namespace::LINK;
use std::process::{Command, Stdio};

/// Requirements of all tests here.
const NEEDS: [Need; 4] =
    [LINK, Need::Program("iptables"), Need::Program("ip6tables"), Need::Of(why_no_tproxy)];

pub(crate) use daemon::run_as_proxy;

pub(crate) fn tests() -> Vec<Test> {
    let tests = hopline_harness::tests!(NEEDS;
        crossing::bytes_cross_both_ways_under_both_addresses_over_ipv4,
        crossing::bytes_cross_both_ways_under_both_addresses_over_ipv6,
        crossing::urgent_data_arrive_in_order,
        crossing::many_connections_at_once_do_not_mix,
        crossing::halves_have_the_options_of_their_hosts_also_after_a_reload,
        crossing::halves_have_the_options_of_the_networks_of_their_hosts,
        ends::a_half_closed_connection_continues,
        ends::a_server_may_close_first,
        ends::a_port_in_time_wait_may_be_reused,
        ends::a_reset_is_forwarded_to_the_other_host,
        ends::a_refusing_server_resets_the_client,
        ends::an_unreachable_server_resets_the_client,
        ends::an_unreachable_server_over_ipv6_resets_the_client,
        ends::a_silent_server_resets_the_client,
        ends::a_client_that_gives_up_ends_the_onward_connection,
        ends::a_killed_proxy_never_makes_a_stream_look_complete,
        ends::a_stopped_proxy_resets_remaining_connections,
        ends::a_stopped_proxy_lets_connections_drain,
        ends::a_vanished_host_is_given_up,
        bounds::a_receiver_that_does_not_read_stops_the_sender,
        bounds::connections_above_the_limit_are_reset,
        bounds::without_descriptors_connections_are_reset_without_busy_waiting,
        bounds::the_port_is_not_an_open_relay,
        bounds::errors_are_named,
        moving::a_socket_moves_with_its_state_over_ipv4,
        moving::a_socket_moves_with_its_state_over_ipv6,
        moving::a_socket_moves_without_options,
        moving::a_packet_that_reaches_a_frozen_socket_is_detected,
        moving::a_frozen_socket_is_thawed_or_reset,
        moving::an_idle_socket_moves,
        moved::connections_move_back_and_forth_under_loss_over_ipv4,
        moved::connections_move_back_and_forth_under_loss_over_ipv6,
        moved::many_connections_move,
        moved::a_half_closed_connection_is_not_moved,
        moved::a_full_station_refuses_and_the_connection_continues,
        moved::a_station_of_another_network_gets_no_connection,
        moved::a_connection_is_not_moved_before_the_commit,
        moved::data_sent_during_a_move_are_not_lost,
        moved::an_uncertain_move_resets_both_hosts,
        moved::a_killed_claimant_leaves_the_connection,
        moved::a_killed_holder_resets_both_hosts,
        moved::a_client_may_reuse_the_port_of_a_moved_connection_for_other_servers,
    );
    let confined = hopline_harness::tests!([&NEEDS[..], &[Need::Program("setpriv")]].concat();
        bounds::the_documented_capabilities_are_sufficient,
    );
    let measured = [
        ("throughput_of_trains", measured::throughput_of_gso as fn()),
        ("throughput_of_single_packets", measured::throughput_of_single_packets),
        ("latency", measured::latency),
        ("connections", measured::connections),
        ("lossy_link", lossy::lossy_link),
        ("pause_of_a_move", moved::pause_of_a_move),
    ];
    let measured = measured.map(|(name, body)| Test::new(name, NEEDS, body).long());
    tests.into_iter().chain(confined).chain(measured).collect()
}

/// Tries a rule with TPROXY and the socket match. Returns the reason if it is not available here.
fn why_no_tproxy() -> Option<String> {
    let host = Namespace::new().ok()?;
    let rule =
        "-w -t mangle -A PREROUTING -p tcp -m socket --transparent -j TPROXY --on-port 1 --tproxy-mark 1";
    let mut command = Command::new("iptables");
    command.args(rule.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
    let taken = host.spawn(command).and_then(|mut tried| tried.wait()).is_ok_and(|tried| tried.success());
    (!taken).then(|| "iptables has no TPROXY or no socket match here".into())
}
