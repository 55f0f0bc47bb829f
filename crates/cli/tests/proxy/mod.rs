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
        start::a_router_that_does_not_forward_is_warned_of,
        start::what_is_wrong_with_a_file_is_shown_with_its_place_and_help,
        start::a_dry_run_pasted_into_a_shell_gives_the_same_rules,
        start::setup_may_be_repeated_and_undone_twice,
        start::a_second_daemon_of_a_name_is_refused_and_the_first_goes_on,
        start::a_daemon_of_another_name_is_told_what_it_shares_with_the_first,
        start::what_is_taken_is_named_and_nothing_is_set_up,
        start::what_is_not_there_yet_is_named_by_check_and_waited_for_by_run,
        start::addresses_of_listeners_and_of_handoff_that_are_not_there_yet_are_waited_for,
        start::a_strict_filter_that_would_drop_what_a_tunnel_receives_is_warned_of,
        start::without_the_right_to_it_one_sentence_says_so,
        start::without_the_programs_one_sentence_says_what_to_install,
        start::without_ip6tables_ipv4_is_served_and_ipv6_warned_of,
        start::a_chain_that_somebody_else_made_is_a_conflict_and_stays,
        start::status_without_a_daemon_says_so,
        life::told_to_end_it_leaves_no_rule_route_process_or_socket,
        life::told_to_end_it_resets_what_is_split_and_lets_go_on_what_passes,
        life::killed_it_is_cleaned_up_after_by_its_keeper,
        life::killed_at_any_moment_of_its_start_it_leaves_nothing,
        life::killed_and_started_again_at_once_it_runs,
        life::killed_with_its_keeper_it_is_cleaned_up_after_by_the_next_start,
        life::packets_are_served_in_real_time_where_that_is_permitted_and_privileges_are_given_up,
        life::started_by_root_it_goes_on_as_the_user_of_its_file,
        life::an_interface_that_vanishes_is_waited_for,
        life::each_kind_goes_on_when_its_interface_returns,
        life::the_queue_of_a_shaped_interface_comes_with_the_daemon_and_goes_with_it,
        life::a_queue_that_somebody_else_has_set_up_is_a_conflict_and_stays,
        reload::connections_go_on_while_the_file_is_read_again,
        reload::many_signals_at_once_are_read_again_and_nothing_else,
        reload::rules_that_another_program_has_removed_are_made_again,
        reload::queues_and_ports_may_change_hands,
        nat::middleboxes_work_where_a_router_translates,
        nat::questions_reach_a_mobile_host_that_is_translated,
        nat::a_server_hears_the_reset_of_a_translated_connection,
        nat::a_gateway_takes_calls_of_hosts_that_are_translated,
        nat::d_proxy_repairs_what_a_router_translates,
        tracking::a_router_that_tracks_nothing_still_does_not_while_proxies_run,
        tracking::a_translation_that_begins_later_finds_the_rules_for_it,
        tracking::a_daemon_that_is_not_root_has_the_rules_later_too_and_a_reload_keeps_them,
        tracking::connections_that_are_tracked_are_seen_where_no_rule_is,
        tracking::connections_split_before_go_on_when_tracking_begins,
        onward::a_closed_port_is_refused,
        onward::a_network_out_of_reach_is_told,
        onward::a_server_that_answers_late_is_called_once,
        onward::calls_to_black_holes_keep_no_other_call_waiting,
        onward::forged_calls_that_servers_answer_keep_no_other_call_waiting,
        onward::killed_while_calls_wait_it_leaves_nothing_and_they_reach_the_server,
        onward::told_so_it_answers_before_it_calls,
        policy::a_call_whose_way_would_be_another_one_is_not_split,
        policy::a_call_whose_way_would_be_another_one_goes_past_a_gateway,
        policy::such_a_call_does_not_pass_a_gateway_that_lets_nothing_go_in_clear,
        policy::rules_that_look_beyond_the_destination_are_told,
        firewall::what_the_firewall_forbids_is_not_split,
        firewall::what_the_firewall_forbids_no_gateway_takes,
        moves::connections_follow_their_host_between_stations,
        moves::connections_follow_their_host_by_registration,
        moves::a_station_that_is_killed_resets_its_connections_and_the_other_one_serves,
        moves::a_station_that_begins_again_claims_what_the_other_one_has,
        moves::a_station_of_another_network_gets_nothing_and_gives_nothing,
        moves::a_previous_station_out_of_reach_is_asked_again,
        moves::a_connection_that_stayed_goes_on_when_its_host_comes_back,
        moves::without_moves_calls_beside_a_base_station_pass_unsplit,
        moves::moves_are_refused_where_connections_are_tracked,
        moves::connections_stay_where_tracking_begins,
        tunnels::a_stream_through_a_tunnel_goes_on_when_its_daemon_is_restarted,
        tunnels::a_stream_through_a_tunnel_goes_on_when_its_daemon_was_killed,
        tunnels::a_stream_through_a_tunnel_goes_on_when_its_parameters_change,
        tunnels::routes_that_contain_the_other_end_do_not_swallow_the_tunnel,
        tunnels::routes_of_ipv6_that_contain_the_other_end_do_not_swallow_the_tunnel,
        tunnels::an_interface_that_the_daemon_did_not_make_is_refused_and_stays,
        tunnels::what_a_file_no_longer_names_goes_when_it_is_read_again,
        uploads::what_the_station_asks_for_is_sent_again_by_the_mobile_host,
        uploads::an_ordinary_host_is_asked_nothing,
        uploads::without_a_station_a_host_only_announces,
        uploads::either_end_that_is_killed_and_begins_again_repairs_again,
        ipv6::middleboxes_work_over_ipv6,
        ipv6::questions_reach_a_mobile_host_over_ipv6,
        ipv6::snoop_repairs_ipv6_that_is_translated,
        ipv6::other_middleboxes_work_where_ipv6_is_translated,
        ipv6::d_proxy_repairs_ipv6,
        ipv6::a_server_hears_the_reset_of_a_connection_over_ipv6,
        ipv6::a_router_without_ipv6_serves_ipv4,
        ipv6::a_gateway_takes_calls_over_ipv6_that_are_translated,
        gateways::what_has_announced_itself_is_reached_over_tpa_from_the_second_connection_on,
        gateways::each_change_of_the_other_gateway_is_logged_once,
        gateways::an_entrance_that_does_not_run_lets_nothing_cross_in_clear,
        asked::its_status_is_json_and_text,
        asked::every_user_may_ask_and_none_but_its_own_may_change_it,
        asked::members_of_a_group_may_ask_where_one_is_named,
        asked::top_shows_what_each_proxy_does_in_a_second,
        asked::top_on_a_terminal_ends_with_q_and_leaves_it_as_it_was,
        asked::its_files_have_the_same_permissions_whatever_the_umask,
        asked::its_page_is_what_prometheus_reads,
        asked::who_asks_badly_gets_nothing_and_keeps_nobody_waiting,
        floods::forged_flows_are_bounded_and_transfers_go_on,
        floods::forged_calls_are_bounded_and_transfers_go_on,
        floods::who_listens_for_datagrams_counts_garbage_and_answers_with_no_more_than_came,
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
            missing::an_end_that_is_missing_costs_no_more_than_a_hundredth as fn(),
        ),
        (
            "an_end_that_begins_again_and_again_repairs_each_time",
            missing::an_end_that_begins_again_and_again_repairs_each_time,
        ),
        ("silence_of_a_handoff", moves::silence_of_a_handoff),
        ("what_it_costs_to_call_the_server_first", onward::what_it_costs_to_call_the_server_first),
        (
            "an_interface_that_returns_is_used_within_five_seconds",
            missing::an_interface_that_returns_is_used_within_five_seconds,
        ),
    ]
    .map(|(name, body)| Test::new(name, needs.clone(), body).long().alone());
    let long = long.map(|(name, body)| Test::new(name, NEEDS, body).long());
    tests.into_iter().chain(long).chain(measured).collect()
}
