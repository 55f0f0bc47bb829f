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

pub(crate) use daemon::instead;

pub(crate) fn tests() -> Vec<Test> {
    let tests = hopline_harness::tests!(NEEDS;
        crossing::bytes_cross_both_ways_under_both_addresses_over_ipv4,
        crossing::bytes_cross_both_ways_under_both_addresses_over_ipv6,
        crossing::urgent_data_arrive_in_their_row,
        crossing::many_connections_at_once_do_not_mix,
        crossing::halves_are_told_by_the_hosts_at_their_ends_and_anew_when_reloaded,
        crossing::halves_are_told_by_the_networks_of_the_hosts_at_their_ends,
        ends::what_one_host_has_ended_the_other_may_still_answer,
        ends::a_server_may_end_first,
        ends::a_port_that_was_just_used_may_call_again,
        ends::a_reset_goes_on_to_the_other_host,
        ends::who_refuses_has_the_caller_reset,
        ends::who_cannot_be_reached_has_the_caller_reset,
        ends::who_cannot_be_reached_over_ipv6_has_the_caller_reset,
        ends::who_does_not_answer_has_the_caller_reset,
        ends::a_caller_that_gives_up_ends_the_call_onward,
        ends::a_killed_proxy_never_makes_a_stream_look_complete,
        ends::a_stopped_proxy_resets_what_is_left,
        ends::a_stopped_proxy_lets_connections_go_on_for_a_while,
        ends::who_vanishes_is_given_up,
        bounds::who_does_not_read_stops_who_sends,
        bounds::calls_beyond_the_limit_are_reset,
        bounds::without_descriptors_calls_are_reset_and_nothing_spins,
        bounds::the_port_is_nobodys_relay,
        bounds::mistakes_are_named,
        moving::a_socket_moves_with_everything_over_ipv4,
        moving::a_socket_moves_with_everything_over_ipv6,
        moving::a_socket_moves_without_options,
        moving::a_packet_that_reaches_a_frozen_socket_is_noticed,
        moving::a_frozen_socket_goes_on_or_resets,
        moving::an_idle_socket_moves,
        moved::connections_move_back_and_forth_under_loss_over_ipv4,
        moved::connections_move_back_and_forth_under_loss_over_ipv6,
        moved::many_connections_move,
        moved::a_connection_that_has_ended_one_direction_stays,
        moved::a_full_station_refuses_and_the_connection_stays,
        moved::a_station_of_another_network_gets_nothing,
        moved::a_connection_stays_where_it_is_until_the_commit,
        moved::what_comes_during_a_move_is_not_lost,
        moved::a_doubt_resets_both_hosts,
        moved::a_claimant_that_is_killed_leaves_the_connection,
        moved::a_holder_that_is_killed_resets_both_hosts,
        moved::a_client_may_call_other_servers_by_the_port_of_a_connection_that_moved,
    );
    let confined = hopline_harness::tests!([&NEEDS[..], &[Need::Program("setpriv")]].concat();
        bounds::it_runs_with_no_capability_that_is_not_documented,
    );
    let measured = [
        ("throughput_of_trains", measured::throughput_of_trains as fn()),
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
