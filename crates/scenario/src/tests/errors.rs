//! Wrong scenarios, each with its place and its remedy.

use super::*;

/// The first problem as `line:column message | help`.
#[track_caller]
pub(super) fn first_problem(text: &str) -> String {
    let problems = parse(text, &[]).expect_err("this is wrong");
    let problem = &problems.0[0];
    let at = problem.at.as_ref().expect("every problem of a file has a place");
    assert_eq!(at.source.name, "test.toml");
    let (line, column) = at.line_column();
    format!("{line}:{column} {} | {}", problem.message, problem.help.as_deref().unwrap_or("-"))
}

/// `CHAIN` with `old` replaced.
#[track_caller]
fn chain(old: &str, new: &str) -> String {
    assert!(CHAIN.contains(old));
    CHAIN.replace(old, new)
}

/// `CHAIN` with an outage from n0 and `rest` of it.
fn with_outage(rest: &str) -> String {
    format!("{CHAIN}[[outage]]\nfrom = \"n0\"\n{rest}\n")
}

/// `CHAIN` with a flood of notices by `node` and `rest` of it.
fn with_flood(node: &str, rest: &str) -> String {
    format!("{CHAIN}[[notice_flood]]\nnode = \"{node}\"\n{rest}\n")
}

macro_rules! wrong {
    ($($name:ident: $text:expr => $expected:expr;)*) => {
        $(#[test] fn $name() { assert_eq!(first_problem(&$text), $expected); })*
    };
}

wrong! {
    text_that_is_not_toml: "duration_s = 10\nseed = = 3\n" =>
        "2:8 invalid TOML: extra `=`, expected nothing | -";
    an_unclosed_string: "name = \"chain\nduration_s = 10\n" =>
        "1:14 invalid TOML: invalid basic string, expected `\"` | -";
    a_key_given_twice: "duration_s = 10\nduration_s = 20\n" =>
        "2:1 invalid TOML: duplicate key | -";
    a_misspelt_key: chain("duration_s", "durration_s") =>
        "1:1 unknown key `durration_s` | did you mean `duration_s`?";
    a_misspelt_key_of_a_section: chain("spacing_m = 200", "spacing_m = 200\nspcing_m = 3") =>
        "6:1 unknown key `spcing_m` in `nodes` | did you mean `spacing_m`?";
    a_key_like_no_other: chain("[radio]", "[radio]\nzzzzzz = 1") =>
        "7:1 unknown key `zzzzzz` in `radio` | known keys: preset, propagation, range_m, carrier_sense_range_m, \
         interference_range_m, path_loss_exponent, reference_distance_m, shadowing_deviation_db, shadowing_draw, \
         tx_power_dbm, frequency_mhz, antenna_height_m, reception, capture_db, address_resolution, arp_jitter_s, link_layer_delay_us, channels, noise_figure_db, noise_bandwidth_mhz, transmit_draw_w, receive_draw_w, idle_draw_w, errors, loss";
    jitter_of_requests_that_no_node_sends: chain("[radio]", "[radio]\narp_jitter_s = 0.1") =>
        "7:16 `arp_jitter_s` is used with address_resolution = \"arp\", not \"known\" | set address_resolution = \"arp\", or remove it";
    a_string_for_a_number: chain("duration_s = 10", "duration_s = \"ten\"") =>
        "1:14 `duration_s` takes a number from 0.000001 to 10000000, not a string | virtual time to simulate";
    a_fraction_for_a_whole_number: chain("count = 3", "count = 3.5") =>
        "4:9 `nodes.count` takes a whole number from 1 to 1048576, not a number | nodes of a chain or a random network";
    a_table_for_a_list: "duration_s = 1\n[flow]\nsrc = \"a\"\n" =>
        "2:1 `flow` takes a list of tables, [[flow]], not a table | flows listed one by one";
    a_date: chain("count = 3", "count = 2026-11-21") =>
        "4:9 `nodes.count` takes a whole number from 1 to 1048576, not a date | nodes of a chain or a random network";
    a_run_of_no_time: chain("duration_s = 10", "duration_s = 0") =>
        "1:14 `duration_s` = 0 is out of range | it takes a number from 0.000001 to 10000000";
    a_warm_up_as_long_as_the_run: chain("duration_s = 10", "duration_s = 10\nwarmup_s = 10") =>
        "2:12 `warmup_s` = 10 leaves nothing that counts | it must be below duration_s = 10";
    an_animation_after_the_end: chain("duration_s = 10", "duration_s = 10\nanimation.from_s = 10") =>
        "2:20 `animation.from_s` = 10 is not within the run | it must be below duration_s = 10";
    an_animation_that_ends_before_it_begins:
        chain("duration_s = 10", "duration_s = 10\nanimation = { from_s = 3, to_s = 2 }") =>
        "2:34 `animation.to_s` = 2 leaves nothing to play | it must be above animation.from_s = 3";
    a_warm_up_before_the_start: chain("duration_s = 10", "duration_s = 10\nwarmup_s = -1") =>
        "2:12 `warmup_s` = -1 is out of range | it takes a number from 0 to 10000000";
    no_number_at_all: chain("duration_s = 10", "duration_s = nan") =>
        "1:14 `duration_s` = NaN is out of range | it takes a number from 0.000001 to 10000000";
    a_flood_by_no_node: with_flood("n9", "") =>
        "11:8 there is no node `n9` | did you mean `n0`? the nodes are n0, n1, n2";
    a_flood_by_a_node_without_radio: with_flood("w", "[[node]]\nname = \"w\"\ninterface = \"wired\"") =>
        "11:8 a flood of notices by `w`, which has no radio | notices go over the air: name a wireless node";
    a_flood_of_no_time: with_flood("n0", "start_s = 3\nstop_s = 3") =>
        "13:10 the flood is over before it begins | stop_s must be above start_s = 3";
    a_flood_without_pause: with_flood("n0", "interval_s = 0") =>
        "12:14 `notice_flood.0.interval_s` = 0 is out of range | it takes a number from 0.001 to 10000000";
    a_flood_of_more_than_everything: with_flood("n0", "normalized_pb = 2") =>
        "12:17 `notice_flood.0.normalized_pb` = 2 is out of range | it takes a number from 0 to 1";
    a_notice_that_outlives_its_field: with_flood("n0", "lifetime_s = 66") =>
        "12:14 `notice_flood.0.lifetime_s` = 66 is out of range | it takes a number from 0 to 65.535";
    a_flood_of_other_lies: with_flood("n0", "forge = \"senders\"") =>
        "12:9 `notice_flood.0.forge` does not know \"senders\" | did you mean \"sender\"? it takes one of \"off\", \
         \"sender\", \"sufferer\"";
    an_outage_of_no_node: with_outage("to = \"n9\"") =>
        "12:6 there is no node `n9` | did you mean `n0`? the nodes are n0, n1, n2";
    an_outage_without_an_end_of_it: with_outage("start_s = 1") =>
        "10:1 `outage.0` has no `to` | add `to = …`, a string: name of the node that does not receive from it";
    an_outage_of_no_time: with_outage("to = \"n1\"\nstart_s = 3\nend_s = 3") =>
        "14:9 the outage is over before it begins | end_s must be above start_s = 3";
    an_outage_that_comes_again_and_has_no_end: with_outage("to = \"n1\"\nevery_s = 3") =>
        "13:11 an outage without end comes again | give end_s as well";
    an_outage_that_comes_again_too_early: with_outage("to = \"n1\"\nend_s = 3\nevery_s = 3") =>
        "14:11 the outage comes again before it is over | every_s must be above the 3 s that it lasts";
    an_outage_that_comes_too_often: with_outage("to = \"n1\"\nend_s = 1e-6\nevery_s = 2e-6") =>
        "14:11 the outage comes 5000000 times | no more than 100000 times in a run: a longer every_s";
    an_outage_that_ends_at_the_start: with_outage("to = \"n1\"\nend_s = 0") =>
        "13:9 the outage is over before it begins | end_s must be above start_s = 0";
    an_outage_between_a_node_and_itself: with_outage("to = \"n0\"") =>
        "12:6 an outage between a node and itself | from and to are different nodes";
    an_outage_of_something_else: with_outage("to = \"n1\"\nblocks = \"frame\"") =>
        "13:10 `outage.0.blocks` does not know \"frame\" | did you mean \"frames\"? it takes one of \"frames\", \"packets\"";
    an_outage_between_nodes_that_have_no_link: with_outage(
        "to = \"w\"\n[[node]]\nname = \"w\"\ninterface = \"wired\""
    ) =>
        "12:6 an outage between `n0` and `w`, which have no link | \
         an outage is of a [[link]], or of the air between two wireless nodes";
    a_negative_count: chain("count = 3", "count = -3") =>
        "4:9 `nodes.count` = -3 is out of range | it takes a whole number from 1 to 1048576";
    a_chain_that_fills_the_memory: chain("count = 3", "count = 1048577") =>
        "4:9 `nodes.count` = 1048577 is out of range | it takes a whole number from 1 to 1048576";
    a_grid_that_fills_the_memory: chain("\"chain\"", "\"grid\"").replace("count = 3", "columns = 1048576\nrows = 2") =>
        "5:8 a network of 2097152 nodes | it has at most 1048576, which take some 3.5 GB of memory";
    a_grid_that_does_not_fit_a_number: chain("\"chain\"", "\"grid\"")
        .replace("count = 3", "columns = 1048576\nrows = 1048576") =>
        "5:8 a network of 1099511627776 nodes | it has at most 1048576, which take some 3.5 GB of memory";
    one_node_beside_a_chain_that_is_full: chain("count = 3", "count = 1048576") + "[[node]]\n" =>
        "4:9 a network of 1048577 nodes | it has at most 1048576, which take some 3.5 GB of memory";
    a_number_too_large_for_toml: chain("count = 3", "count = 99999999999999999999") =>
        "4:9 a number too large to be stored | -";
    a_word_that_is_not_known: chain("\"chain\"", "\"chian\"") =>
        "3:10 `nodes.layout` does not know \"chian\" | did you mean \"chain\"? it takes one of \"chain\", \"grid\", \
         \"random\", \"movements\", \"file\"";
    a_missing_key: chain("duration_s = 10\n", "") =>
        "1:1 the scenario has no `duration_s` | add `duration_s = …`, a number from 0.000001 to 10000000: virtual time \
         to simulate";
    a_flow_without_destination: chain("dst = \"n2\"\n", "") =>
        "7:1 a flow without `dst` | add dst, the name of a node, or pairs, a number of flows between random nodes";
    a_flow_to_a_node_that_does_not_exist: chain("\"n2\"", "\"n3\"") =>
        "9:7 there is no node `n3` | did you mean `n0`? the nodes are n0, n1, n2";
    a_flow_to_a_node_like_no_other: chain("\"n2\"", "\"gateway\"") =>
        "9:7 there is no node `gateway` | the nodes are n0, n1, n2";
    a_flow_to_itself: chain("\"n2\"", "\"n0\"") =>
        "9:7 a flow from a node to itself | src and dst are different nodes";
    two_nodes_of_one_name: CHAIN.to_owned() + "[[node]]\nname = \"n1\"\n" =>
        "11:8 a second node named `n1` | the first is at test.toml:2:1; names of nodes are unique, and [nodes] makes \
         n0, n1, …";
    two_flows_of_one_name: CHAIN.to_owned() + "[[flow]]\nname = \"f0\"\nsrc = \"n1\"\ndst = \"n0\"\n" =>
        "11:8 a second flow named `f0` | names of flows are unique";
    a_flow_that_may_stop_before_it_starts: CHAIN.to_owned() + "start_s = 5\nstart_jitter_s = 1\nstop_s = 5.5\n" =>
        "12:10 the flow stops before it starts | stop_s must be above start_s + start_jitter_s = 6";
    a_flow_that_stops_before_it_starts: CHAIN.to_owned() + "start_s = 5\nstop_s = 4\n" =>
        "11:10 the flow stops before it starts | stop_s must be above start_s = 5";
    a_cbr_flow_without_rate: CHAIN.to_owned() + "kind = \"cbr\"\n" =>
        "10:8 a flow of kind \"cbr\" without `rate_kbps` | add rate_kbps, the rate of its payload in kb/s";
    a_bulk_flow_with_a_rate: CHAIN.to_owned() + "rate_kbps = 10\n" =>
        "10:13 `rate_kbps` is used with kind = \"cbr\" or \"on-off\", not \"bulk\" | \
         set kind = \"cbr\" or \"on-off\", or remove it";
    an_on_time_of_a_constant_rate: CHAIN.to_owned() + "kind = \"cbr\"\nrate_kbps = 1\non_s = 1\n" =>
        "12:8 `on_s` is used with kind = \"on-off\", not \"cbr\" | set kind = \"on-off\", or remove it";
    datagrams_over_tcp: CHAIN.to_owned() + "kind = \"on-off\"\ntransport = \"tcp-sack\"\n" =>
        "11:13 `transport` is used with kind = \"bulk\" or \"request-response\" or \"http\" or \"recorded\", not \"on-off\" | \
         set kind = \"bulk\" or \"request-response\" or \"http\" or \"recorded\", or remove it";
    a_request_without_a_response: CHAIN.to_owned() + "kind = \"request-response\"\nrequest_bytes = 1\n" =>
        "10:8 a request-response flow without `response_bytes` | \
         add response_bytes, or set kind = \"http\" for typical sizes";
    a_request_of_nothing: CHAIN.to_owned() + "kind = \"http\"\nrequest_bytes = 0\n" =>
        "11:17 `flow.0.request_bytes` = 0 is out of range | it takes a number from 1 to 1000000000000, or a table";
    a_word_for_a_draw: CHAIN.to_owned() + "kind = \"http\"\nthink_s = \"long\"\n" =>
        "11:11 `flow.0.think_s` takes a number from 0 to 10000000, or a table, not a string | \
         of request-response and http: from a response to the next request; default: 0; of http: exponential, mean 30";
    a_draw_without_distribution: CHAIN.to_owned() + "kind = \"http\"\nthink_s = { mean = 1 }\n" =>
        "11:11 `flow.0.think_s` has no `draw` | add `draw = …`, one of \"uniform\", \"exponential\", \
         \"bounded-pareto\", \"log-normal\": distribution; its parameters have the unit of the drawn value";
    a_draw_without_its_parameter: CHAIN.to_owned() + "kind = \"http\"\nthink_s = { draw = \"exponential\" }\n" =>
        "11:20 a draw of \"exponential\" without `mean` | add mean, in the unit of `think_s`";
    a_draw_with_a_foreign_parameter:
        CHAIN.to_owned() + "kind = \"http\"\nthink_s = { draw = \"uniform\", shape = 2 }\n" =>
        "11:39 `shape` is used with draw = \"bounded-pareto\", not \"uniform\" | \
         set draw = \"bounded-pareto\", or remove it";
    a_draw_upside_down:
        CHAIN.to_owned() + "kind = \"http\"\nthink_s = { draw = \"uniform\", min = 3, max = 2 }\n" =>
        "11:46 `max` = 2 is below `min` = 3 | exchange the two";
    a_pareto_from_zero:
        CHAIN.to_owned() + "kind = \"http\"\nthink_s = { draw = \"bounded-pareto\", min = 0, max = 2, shape = 1 }\n" =>
        "11:44 `min` must be above 0 here | the distribution has logarithms of it";
    no_flows: chain("[[flow]]\nsrc = \"n0\"\ndst = \"n2\"\n", "") =>
        "1:1 no flows: nothing would be sent | add [[flow]] with src and dst";
    no_nodes: "duration_s = 1\n[radio]\n[[flow]]\nsrc = \"a\"\ndst = \"b\"\n" =>
        "1:1 no nodes | add [nodes] with a layout, or [[node]]";
    a_layout_without_its_keys: chain("spacing_m = 200\n", "") =>
        "3:10 layout \"chain\" needs `spacing_m` | layout \"chain\" takes count, spacing_m";
    a_layout_with_keys_of_another: chain("count = 3", "count = 3\nrows = 2") =>
        "5:8 layout \"chain\" does not use `rows` | it takes count, spacing_m";
    neither_radio_nor_link: chain("[radio]\n", "") =>
        "1:1 neither [radio] nor [[link]]: no node can reach another | add [radio] with preset = \"ns2-wavelan\" for a \
         wireless network, [[link]] for a wired one";
    a_wireless_node_without_radio: WIRED.replace("\"client\"\n[[link]]", "\"client\"\ninterface = \"wireless\"\n[[link]]") =>
        "6:13 a wireless node, but the scenario has no [radio] | add [radio] with preset = \"ns2-wavelan\"";
    a_mac_without_radio: WIRED.to_owned() + "[mac]\ncw_min = 15\n" =>
        "14:1 [mac] without [radio]: the network has no wireless nodes | add [radio], or remove it; a wired link has its \
         own queue";
    aodv_in_a_wired_network: WIRED.to_owned() + "[routing]\nprotocol = \"aodv\"\n" =>
        "15:12 AODV runs on nodes with a radio, and there is none | use protocol = \"static\", or add [radio]";
    aodv_parameters_for_static_routes: CHAIN.to_owned() + "[routing.aodv]\nnet_diameter = 5\n" =>
        "10:1 [routing.aodv] is given but the protocol is static | set routing.protocol = \"aodv\"";
    olsr_parameters_for_aodv: CHAIN.to_owned() + "[routing]\nprotocol = \"aodv\"\n[routing.olsr]\nwillingness = 3\n" =>
        "12:1 [routing.olsr] is given but the protocol is aodv | set routing.protocol = \"olsr\"";
    dsr_parameters_for_static_routes: CHAIN.to_owned() + "[routing.dsr]\ncache = \"off\"\n" =>
        "10:1 [routing.dsr] is given but the protocol is static | set routing.protocol = \"dsr\"";
    a_cache_that_is_off_and_large: CHAIN.to_owned() + "[routing]\nprotocol = \"dsr\"\ndsr.cache = \"off\"\ndsr.cache_paths = 9\n" =>
        "13:19 cache_paths is of the route cache, and the cache is off | leave it out, or set cache = \"paths\"";
    salvage_without_a_cache_with_one: CHAIN.to_owned() + "[routing]\nprotocol = \"dsr\"\ndsr.uncached_salvage = \"everywhere\"\n" =>
        "12:24 uncached_salvage is for the cache off, and there is a cache | leave it out, or set cache = \"off\"; with a cache, packets are given the routes that it holds";
    olsr_in_a_wired_network: WIRED.to_owned() + "[routing]\nprotocol = \"olsr\"\n" =>
        "15:12 OLSR runs on nodes with a radio, and there is none | use protocol = \"static\", or add [radio]";
    channels_of_a_wired_node: WIRED.replace("name = \"server\"", "name = \"server\"\nchannels = [1]") =>
        "4:12 channels, but no radio | a node with interface = \"wireless\" has radios, where the scenario has [radio]";
    waypoints_of_a_fixed_node: WIRED.replace("name = \"server\"", "name = \"server\"\nfixed = true\nwaypoints = [{ at_s = 1, x_m = 1, y_m = 1, speed_mps = 1 }]") =>
        "5:14 waypoints of a node that is fixed | remove the waypoints, or `fixed`";
    two_radios_on_a_channel: chain("[radio]", "[radio]\nchannels = [1, 6, 1]") =>
        "7:19 two radios on channel 1 | each radio of a node is on a channel of its own";
    more_radios_than_memory_holds: chain("count = 3", "count = 1048576").replace("[radio]", "[radio]\nchannels = [1, 2]") =>
        "7:12 a network of 2097152 radios | it has at most 1048576, as many as nodes";
    no_channel_at_all: chain("[radio]", "[radio]\nchannels = []") =>
        "7:12 `radio.channels` takes a list of whole numbers from 0 to 65535, not a list | a radio for each of these \
         channels, at wireless nodes without their own list; default: one radio, channel 0";
    a_channel_that_is_no_number: chain("[radio]", "[radio]\nchannels = [1, \"six\"]") =>
        "7:16 `radio.channels` takes a list of whole numbers from 0 to 65535 | a radio for each of these channels, at \
         wireless nodes without their own list; default: one radio, channel 0";
    a_gateway_for_static_routes: CHAIN.to_owned() + "[routing]\ngateway = \"n0\"\n" =>
        "11:11 a gateway, but the protocol is static | static routes lead over radios and links alike: leave it out, or \
         set routing.protocol";
    a_gateway_without_a_wire: CHAIN.to_owned() + "[routing]\nprotocol = \"aodv\"\ngateway = \"n0\"\n" =>
        "12:11 `n0` is no gateway | a gateway has a radio and a [[link]]";
    a_gateway_that_does_not_exist: CHAIN.to_owned() + "[routing]\nprotocol = \"aodv\"\ngateway = \"n7\"\n" =>
        "12:11 there is no node `n7` | did you mean `n0`? the nodes are n0, n1, n2";
    a_route_to_itself: CHAIN.to_owned() + "[[route]]\nat = \"n0\"\nto = \"n0\"\nvia = \"n1\"\n" =>
        "12:6 a route from a node to itself | `to` and `via` are other nodes than `at`";
    a_route_via_nobody_near: WIRED.to_owned() + "[[route]]\nat = \"client\"\nto = \"server\"\nvia = \"other\"\n[[node]]\nname = \"other\"\n" =>
        "17:7 a route from `client` via `other`, which is no neighbour | neighbours have a [[link]], or radios on the same \
         channel";
    hysteresis_upside_down: CHAIN.to_owned() + "[routing]\nprotocol = \"olsr\"\nolsr.hysteresis_threshold_low = 0.9\n" =>
        "12:33 hysteresis_threshold_low (0.9) is above hysteresis_threshold_high (0.8) | a link is used above the high \
         threshold and given up below the low one";
    a_link_to_a_node_that_does_not_exist: WIRED.replace("b = \"client\"", "b = \"cleint\"") =>
        "8:5 there is no node `cleint` | did you mean `client`? the nodes are server, client";
    a_link_to_itself: WIRED.replace("b = \"client\"", "b = \"server\"") =>
        "8:5 a link from a node to itself | a and b are different nodes";
    a_rate_that_802_11_lacks: CHAIN.to_owned() + "[mac]\ndata_rate_mbps = 3\n" =>
        "11:18 802.11 has no rate of 3 Mb/s | rates are 1, 2, 5.5, 11, 6, 9, 12, 18, 24, 36, 48, 54 Mb/s";
    a_window_that_is_no_power_of_two_less_one: CHAIN.to_owned() + "[mac]\ncw_min = 30\n" =>
        "11:10 MAC parameters do not fit together: contention windows must be of the form 2^n - 1 with \
         cw_min <= cw_max, not 30 and 1023 | -";
    rto_limits_that_cross: CHAIN.to_owned() + "[tcp]\nmin_rto_s = 5\nmax_rto_s = 1\n" =>
        "12:13 `max_rto_s` must be above 0 and at least `min_rto_s` | set a value that fits, or leave the key out for its default";
    a_minimum_above_the_maximum_of_the_preset: CHAIN.to_owned() + "[tcp]\nmin_rto_s = 500\n" =>
        "11:13 `max_rto_s` must be above 0 and at least `min_rto_s` | `max_rto_s` has its default: set it too";
    a_longer_delay_of_urgent_acknowledgments: CHAIN.to_owned() + "[wide]\nack_delay_ms = 300\n[[flow]]\nsrc = \"n0\"\ndst = \"n1\"\ntransport = \"tpa-wide\"\n" =>
        "11:16 `relaxed_ack_delay_ms` must be at least `ack_delay_ms` | `relaxed_ack_delay_ms` has its default: set it too";
    receiving_farther_than_sensing: chain("[radio]", "[radio]\nrange_m = 600") =>
        "7:11 frames would be received up to 600 m but sensed only up to 550 m | carrier_sense_range_m is at least range_m";
    an_error_model_without_its_rate: chain("[radio]", "[radio]\nerrors.model = \"bit\"") =>
        "7:16 error model \"bit\" needs `bit_error_rate` | -";
    a_direction_of_no_errors: WIRED.to_owned().replace("delay_ms = 1.5", "delay_ms = 1.5\nerrors.direction = \"a-to-b\"") =>
        "11:20 `direction` is used with model = \"bit\" or \"packet\" or \"every-nth\" or \"gilbert-packet\" or \"gilbert-elliott\", not \
         \"none\" | set model = \"bit\" or \"packet\" or \"every-nth\" or \"gilbert-packet\" or \"gilbert-elliott\", or remove it";
    a_direction_of_the_air: chain("[radio]", "[radio]\nerrors = { direction = \"a-to-b\" }") =>
        "7:12 unknown key `direction` in `radio.errors` | known keys: model, bit_error_rate, packet_loss, nth, good_to_bad, \
         bad_to_good, loss_good, loss_bad, mean_good_s, mean_bad_s, bit_error_rate_good, bit_error_rate_bad";
    a_rate_of_another_error_model: chain("[radio]", "[radio]\nerrors = { packet_loss = 0.1 }") =>
        "7:26 `packet_loss` is used with model = \"packet\", not \"none\" | set model = \"packet\", or remove it";
    a_block_size_without_blocks: CHAIN.to_owned() + "[mac]\nblock_size = 16\n" =>
        "11:14 `block_size` is used with ack_policy = \"block-ack\", not \"normal\" | set ack_policy = \"block-ack\", or remove it";
    a_parameter_of_another_propagation_model: chain("[radio]", "[radio]\npath_loss_exponent = 3") =>
        "7:22 `path_loss_exponent` is used with propagation = \"log-distance\" or \"shadowing\", not \"two-ray\" | \
         set propagation = \"log-distance\" or \"shadowing\", or remove it";
    a_least_speed_where_there_is_none: CHAIN.to_owned() + "[mobility]\nmodel = \"random-waypoint\"\nmin_speed_mps = 1\n" =>
        "12:17 `min_speed_mps` is used with model = \"random-waypoint-stationary\", not \"random-waypoint\" | set model = \
         \"random-waypoint-stationary\", or remove it";
    waypoints_out_of_order: CHAIN.to_owned() + "[[node]]\nwaypoints = [\n { at_s = 5, x_m = 0, y_m = 0, speed_mps = 1 },\n \
        { at_s = 4, x_m = 0, y_m = 0, speed_mps = 1 } ]\n" =>
        "13:11 a waypoint that is earlier than the one before it | it follows one at 5 s";
    movement_without_speed: CHAIN.to_owned() + "[mobility]\nmodel = \"random-waypoint\"\nwidth_m = 9\nheight_m = 9\n" =>
        "11:9 mobility model \"random-waypoint\" needs `max_speed_mps` | -";
    movement_that_fills_the_memory: CHAIN.to_owned()
        + "[mobility]\nmodel = \"random-waypoint\"\nwidth_m = 0.01\nheight_m = 0.01\nmax_speed_mps = 10000\n" =>
        "10:1 3 nodes would make about 57536800 trips | all nodes together may make 20000000: fewer nodes, slower, in a larger \
         area, or shorter";
    a_movement_file_for_nodes_that_stand: CHAIN.to_owned() + "[mobility]\nfile = \"m\"\n" =>
        "11:8 `file` is used with model = \"ns2\" or \"bonnmotion\" or \"sumo\" or \"csv\" or \"gpx\", not \"static\" | \
         set model = \"ns2\" or \"bonnmotion\" or \"sumo\" or \"csv\" or \"gpx\", or remove it";
    a_movement_model_without_its_file: CHAIN.to_owned() + "[mobility]\nmodel = \"ns2\"\n" =>
        "11:9 mobility model \"ns2\" needs `file` | -";
}

#[test]
fn all_invalid_keys_are_reported_in_file_order() {
    let problems = parse("zeed = 3\nduration_s = 0\n[radio]\npreset = 7\n[nods]\n", &[]).unwrap_err();
    let lines: Vec<_> = problems.0.iter().map(|p| p.at.as_ref().unwrap().line_column().0).collect();
    assert_eq!(lines, [1, 2, 4, 5]);
}

#[test]
fn a_sweep_takes_lists() {
    let text = CHAIN.to_owned() + "[sweep]\n\"tcp.window\" = 3\n";
    let problems = parse(&text, &[]).unwrap().sweep().unwrap_err();
    assert_eq!(
        problems.to_string(),
        "test.toml:11:16: `sweep.tcp.window` takes a list of values, not a whole number \
         (for example: \"tcp.window\" = [1, 2, 3])"
    );
}
