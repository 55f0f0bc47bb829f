//! The report from outside: the file, and its behaviour in a browser.
#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod chromium;
mod file;
mod network;
mod sample;

use hopline_harness::tests;
use hopline_harness::{Need, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let of_the_file = tests!([];
        file::a_normal_run_is_far_below_a_megabyte,
        file::five_hundred_moving_nodes_and_many_runs_stay_below_a_megabyte,
        file::ten_thousand_variants_are_cut_and_that_is_noted,
        file::every_picture_is_well_formed,
        file::the_page_loads_nothing,
        file::print_and_dark_styles_exist,
        file::the_page_is_complete_without_the_script,
        file::equal_reports_give_equal_pages,
        file::hostile_names_are_escaped,
        file::nan_values_are_omitted_from_charts,
        network::the_played_part_and_omissions_are_noted,
        network::hostile_names_in_the_player_are_escaped,
        network::a_page_without_animations_has_no_player,
    );
    let in_a_browser = tests!([Need::Program("chromium")];
        chromium::every_chart_shows_every_variant_in_the_light_and_in_the_dark,
        chromium::a_complete_page_opens_without_browser_errors,
        chromium::a_reader_can_select_runs_variants_flows_nodes_and_times,
        chromium::without_scripts_charts_are_shown_and_controls_are_hidden,
        chromium::a_browser_error_is_detected,
        network::the_browser_reads_all_events,
        network::nodes_are_at_their_positions_and_frames_in_flight_move,
        network::a_click_on_a_collision_names_the_senders_and_on_a_drop_the_reason,
        network::the_player_is_usable_by_keyboard,
        network::time_is_shared_with_the_charts_of_the_section,
        network::variants_are_played_from_the_same_moment,
        network::two_hundred_nodes_are_drawn_once_an_animation_frame,
        network::a_browser_without_playback_shows_the_map_and_a_note,
    );
    run(of_the_file.into_iter().chain(in_a_browser), None)
}
