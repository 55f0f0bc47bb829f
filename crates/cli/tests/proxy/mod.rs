//! `hopline proxy`: the real program on a router between two hosts, in namespaces of its own, and its failures. `make
//! drills` runs the tests that take minutes.
//!
//! | file | tests |
//! |---|---|
//! | `start` | errors before a daemon runs |
//! | `firewall` | the router's own rules for forwarding |
//! | `floods` | packets of connections that do not exist |
//! | `life` | the end of a daemon, and its remains |
//! | `reload` | SIGHUP |
//! | `nat` | routers with NAT |
//! | `tracking` | connection tracking that begins while the daemon runs |
//! | `onward` | servers that are called before the client is answered |
//! | `moves` | split connections that follow a mobile host between stations; `cells`: their hosts |
//! | `policy` | routers with policy routing |
//! | `uploads` | data of a mobile host, with daemons at both ends of the last hop |
//! | `tunnels` | persistent interfaces of tunnels |
//! | `ipv6` | the same and plain routers, over IPv6 |
//! | `gateways` | announcement of TPA; logs of gateways |
//! | `asked` | status, metrics, and malformed queries |
//! | `missing` | cost of D-Proxy while the other end is missing, and time until returning interfaces are used |
//! | `schedules` | kills, restarts, reloads, outages and losses, drawn from seeds |
//! | `world` | a mobile host, a router, a server, a daemon |
//! | `transfer` | transfers between hosts, and their ends |

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "they tell what they measure")]

mod asked;
mod cells;
mod firewall;
mod floods;
mod gateways;
pub(crate) mod ipv6;
mod life;
mod missing;
mod moves;
pub(crate) mod nat;
mod onward;
mod policy;
mod reload;
mod schedules;
mod start;
mod tracking;
pub(crate) mod transfer;
mod tunnels;
pub(crate) mod uploads;
pub(crate) mod world;

use hopline_harness::{Need, Test, tests};
use hopline_testkit::namespace::LINK;

/// Requirements of all these tests.
pub(crate) const NEEDS: [Need; 6] = [
    LINK,
    Need::Program("iptables"),
    Need::Program("nft"),
    Need::Program("ip"),
    Need::Program("setpriv"),
    Need::Program("prlimit"),
];

pub(crate) fn tests() -> Vec<Test> {
    let tests = tests!(NEEDS;
        start::a_router_without_forwarding_is_warned_about,
        start::errors_in_a_file_have_a_position_and_advice,
        start::the_commands_of_a_dry_run_give_the_same_rules,
        start::setup_and_undo_are_idempotent,
        start::a_second_daemon_of_a_name_is_rejected,
        start::a_daemon_of_another_name_is_told_the_shared_resources,
        start::a_resource_in_use_is_named_and_nothing_is_set_up,
        start::missing_interfaces_are_named_by_check_and_waited_for_by_run,
        start::missing_addresses_are_waited_for,
        start::a_strict_reverse_path_filter_that_drops_tunnel_packets_is_warned_about,
        start::a_missing_privilege_is_a_single_error,
        start::a_missing_program_is_a_single_error,
        start::without_ip6tables_ipv4_works_and_ipv6_is_warned_about,
        start::a_chain_of_another_program_is_a_conflict_and_kept,
        start::status_without_a_daemon_is_an_error,
        life::a_terminated_daemon_leaves_no_rule_route_process_or_socket,
        life::a_terminated_daemon_resets_split_connections_and_keeps_others,
        life::a_killed_daemon_is_cleaned_up_by_its_keeper,
        life::a_daemon_killed_during_its_start_leaves_nothing,
        life::a_killed_daemon_can_be_restarted_at_once,
        life::a_daemon_killed_with_its_keeper_is_cleaned_up_by_the_next_start,
        life::packets_are_processed_in_real_time_if_permitted_and_privileges_are_dropped,
        life::a_daemon_started_by_root_runs_as_the_configured_user,
        life::a_vanished_interface_is_waited_for,
        life::each_kind_resumes_when_its_interface_returns,
        life::the_queue_of_a_shaped_interface_is_added_and_removed_with_the_daemon,
        life::a_queue_of_another_program_is_a_conflict_and_kept,
        reload::connections_continue_during_a_reload,
        reload::many_signals_cause_reloads_only,
        reload::rules_removed_by_another_program_are_restored,
        reload::queues_and_ports_may_be_exchanged,
        nat::middleboxes_work_on_a_router_with_nat,
        nat::requests_reach_a_translated_mobile_host,
        nat::a_server_receives_the_reset_of_a_translated_connection,
        nat::a_gateway_accepts_connections_of_translated_hosts,
        nat::d_proxy_repairs_translated_connections,
        tracking::proxies_do_not_enable_connection_tracking,
        tracking::nat_that_is_enabled_later_gets_its_rules,
        tracking::an_unprivileged_daemon_gets_the_rules_later_and_a_reload_keeps_them,
        tracking::tracking_without_a_visible_rule_is_detected,
        tracking::connections_split_before_tracking_continue,
        onward::a_closed_port_is_refused,
        onward::an_unreachable_network_is_reported,
        onward::a_slow_server_is_connected_once,
        onward::connections_to_black_holes_delay_no_other,
        onward::forged_connections_that_servers_answer_delay_no_other,
        onward::a_daemon_killed_with_pending_connections_leaves_nothing_and_they_reach_the_server,
        onward::client_first_order_answers_before_connecting,
        policy::a_connection_with_another_route_is_not_split,
        policy::a_connection_with_another_route_bypasses_the_gateway,
        policy::such_a_connection_is_rejected_by_a_gateway_without_unencrypted_fallback,
        policy::routing_rules_with_further_criteria_are_reported,
        firewall::connections_that_the_firewall_rejects_are_not_split,
        firewall::connections_that_the_firewall_rejects_pass_no_gateway,
        moves::connections_follow_their_host_between_stations,
        moves::connections_follow_their_host_by_registration,
        moves::a_killed_station_resets_its_connections_and_the_other_one_serves,
        moves::a_restarted_station_claims_the_connections_of_the_other_one,
        moves::a_station_of_another_network_gets_and_gives_no_connection,
        moves::an_unreachable_previous_station_is_asked_again,
        moves::a_connection_that_was_not_moved_continues_when_its_host_returns,
        moves::without_moves_connections_beside_a_base_station_are_not_split,
        moves::moves_are_rejected_where_connections_are_tracked,
        moves::connections_are_not_moved_once_tracking_begins,
        tunnels::a_stream_through_a_tunnel_survives_a_restart_of_its_daemon,
        tunnels::a_stream_through_a_tunnel_survives_the_death_of_its_daemon,
        tunnels::a_stream_through_a_tunnel_survives_a_change_of_parameters,
        tunnels::routes_that_contain_the_peer_do_not_loop_the_tunnel,
        tunnels::ipv6_routes_that_contain_the_peer_do_not_loop_the_tunnel,
        tunnels::an_interface_of_another_program_is_rejected_and_kept,
        tunnels::an_interface_that_the_file_no_longer_names_is_removed_by_a_reload,
        uploads::segments_that_the_station_requests_are_retransmitted_by_the_mobile_host,
        uploads::an_ordinary_host_is_not_requested,
        uploads::without_a_station_a_host_only_announces,
        uploads::either_end_repairs_again_after_it_was_killed_and_restarted,
        ipv6::middleboxes_work_over_ipv6,
        ipv6::requests_reach_a_mobile_host_over_ipv6,
        ipv6::snoop_repairs_translated_ipv6,
        ipv6::other_middleboxes_work_with_translated_ipv6,
        ipv6::d_proxy_repairs_ipv6,
        ipv6::a_server_receives_the_reset_of_a_connection_over_ipv6,
        ipv6::a_router_without_ipv6_serves_ipv4,
        ipv6::a_gateway_accepts_translated_connections_over_ipv6,
        gateways::a_host_that_announced_tpa_is_reached_over_it_from_the_second_connection_on,
        gateways::each_change_of_the_other_gateway_is_logged_once,
        gateways::without_its_entrance_no_connection_leaves_unencrypted,
        asked::the_status_is_json_and_text,
        asked::every_user_may_query_the_status_and_only_the_owner_may_change_it,
        asked::members_of_the_configured_group_may_query_the_status,
        asked::top_shows_the_rates_of_each_proxy,
        asked::top_on_a_terminal_ends_with_q_and_restores_it,
        asked::files_have_the_same_permissions_with_any_umask,
        asked::the_metrics_page_is_valid_prometheus_text,
        asked::malformed_requests_are_rejected_and_delay_no_other,
        floods::forged_flows_are_bounded_and_transfers_continue,
        floods::forged_connections_are_bounded_and_transfers_continue,
        floods::receivers_of_datagrams_count_garbage_and_do_not_amplify,
        schedules::some_schedules_lose_nothing,
    );
    let long = [
        ("two_hundred_schedules_lose_nothing", schedules::two_hundred_schedules_lose_nothing as fn()),
        ("a_hundred_kills_lose_nothing", schedules::a_hundred_kills_lose_nothing),
    ];
    let needs: Vec<Need> = NEEDS.into_iter().chain([Need::Program("tc")]).collect();
    // Measurements, which run while no other test does.
    let measured = [
        (
            "an_end_that_is_missing_costs_no_more_than_a_hundredth",
            missing::a_missing_end_costs_at_most_one_percent as fn(),
        ),
        (
            "an_end_that_begins_again_and_again_repairs_each_time",
            missing::a_repeatedly_restarted_end_repairs_each_time,
        ),
        ("silence_of_a_handoff", moves::silence_of_a_handoff),
        ("what_it_costs_to_call_the_server_first", onward::cost_of_server_first_order),
        (
            "an_interface_that_returns_is_used_within_five_seconds",
            missing::a_returning_interface_is_used_within_five_seconds,
        ),
    ]
    .map(|(name, body)| Test::new(name, needs.clone(), body).long().alone());
    let long = long.map(|(name, body)| Test::new(name, NEEDS, body).long());
    tests.into_iter().chain(long).chain(measured).collect()
}
