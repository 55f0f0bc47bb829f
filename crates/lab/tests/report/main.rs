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
        file::five_hundred_walking_nodes_and_many_runs_stay_below_a_megabyte,
        file::ten_thousand_variants_are_cut_and_that_is_said,
        file::every_picture_is_well_formed,
        file::nothing_is_loaded,
        file::paper_and_dark_have_their_rules,
        file::what_a_reader_needs_is_there_without_the_script,
        file::the_same_report_is_the_same_page,
        file::hostile_names_stay_text,
        file::numbers_that_are_none_are_drawn_as_nothing,
        network::what_is_played_and_what_no_longer_fits_is_said,
        network::hostile_names_of_what_is_played_stay_text,
        network::a_page_that_plays_nothing_has_no_player,
    );
    let in_a_browser = tests!([Need::Program("chromium")];
        chromium::every_chart_shows_every_variant_in_the_light_and_in_the_dark,
        chromium::a_page_with_everything_opens_without_a_complaint,
        chromium::a_reader_can_pick_runs_variants_flows_and_nodes_and_move_through_time,
        chromium::without_scripts_the_charts_are_there_and_dead_controls_are_not,
        chromium::a_complaint_would_be_noticed,
        network::the_browser_reads_all_that_happened,
        network::nodes_stand_in_their_places_and_what_is_on_the_air_moves,
        network::a_click_on_a_collision_says_who_collided_and_on_a_drop_why,
        network::the_keyboard_is_enough,
        network::time_is_shared_with_the_charts_of_the_section,
        network::variants_are_played_one_after_the_other_at_the_same_moment,
        network::two_hundred_nodes_are_drawn_once_an_animation_frame,
        network::a_browser_that_cannot_play_shows_the_map_and_says_so,
    );
    run(of_the_file.into_iter().chain(in_a_browser), None)
}
