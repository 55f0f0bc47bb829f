//! Drills of `hopline send` and `recv`: the real program, real sockets, and everything that goes wrong in the field. They take
//! minutes: `make drills`. Only namespaces of their own are touched.
//!
//! | file | drills |
//! |---|---|
//! | `schedules` | 200 schedules of kills, Ctrl-C, restarts, outages, rebound translators, losses, full disks |
//! | `outages` | silence longer than any limit there is, in real time |
//! | `floods` | a transfer through a receiver under each flood, beside one without |
//! | `redirection` | what reaches a third party that somebody would have flooded |
//! | `paths` | a router with a small MTU that says nothing |
//! | `world` | two hosts, a receiver and a sender, and whoever starts them again |

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "they tell what they measure")]

mod floods;
mod outages;
mod paths;
mod redirection;
mod schedules;
mod world;

use hopline_testkit::namespace::run_long_tests;
use std::env;
use std::process::{Command, ExitCode};

/// Set in the copy of this program that has a mount namespace of its own, for small disks.
const INSIDE: &str = "HOPLINE_DRILLS_INSIDE";

fn main() -> ExitCode {
    if env::var_os(INSIDE).is_none() && env::args().any(|argument| argument == "--ignored") {
        return inside();
    }
    // What is about speed has the machine for itself.
    let alone = run_long_tests(vec![("floods", floods::drill as fn()), ("redirection", redirection::drill)]);
    let together = run_long_tests(vec![
        ("schedules", schedules::drill as fn()),
        ("a_router_with_a_small_mtu_that_says_nothing", paths::drill),
        ("an_outage_longer_than_the_silence_limit", outages::drill),
    ]);
    if alone == ExitCode::SUCCESS { together } else { alone }
}

/// Mounts of the drills are theirs alone, and go with them.
fn inside() -> ExitCode {
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private"]).arg(env::current_exe().unwrap());
    let status = unshare.args(env::args().skip(1)).env(INSIDE, "1").status();
    match status.map(|status| status.code()) {
        Ok(Some(0)) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("unshare cannot be run: {error}");
            ExitCode::FAILURE
        }
    }
}
