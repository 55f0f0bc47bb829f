//! Drills of `hopline send` and `recv`, and of gateways: the real program, real sockets, and everything that goes wrong in the field. They take
//! minutes: `make drills`. Only namespaces of their own are touched.
//!
//! | file | drills |
//! |---|---|
//! | `schedules` | 200 schedules of kills, Ctrl-C, restarts, outages, rebound translators, losses, full disks |
//! | `outages` | silence longer than any limit there is, in real time |
//! | `floods` | a transfer through a receiver under each flood, beside one without |
//! | `strangers` | handshakes that are never finished or finished with garbage, and data that cannot be read |
//! | `redirection` | datagrams to a third party, as an attacker forged its address |
//! | `small_files` | a tree of 20,000 files over a long path |
//! | `clocks` | clocks that are set, while daemons run and before they start again |
//! | `gateways` | new connections through a trunk, an exit that dies, an attacker between the gateways |
//! | `paths` | a router with a small MTU that says nothing |
//! | `translation` | proxies on a router with NAT, beside one without, and no proxy |
//! | `delay` | a path that delays what comes to a router |
//! | `recipes` | the tables of recipes for proxies |
//! | `attacker` | a peer that speaks TPA-wide and does what no honest end does |
//! | `world` | two hosts, a receiver and a sender, and the supervisor that restarts them |

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "they tell what they measure")]

mod attacker;
mod clocks;
mod delay;
mod floods;
mod gateways;
mod outages;
mod paths;
mod recipes;
mod redirection;
mod schedules;
mod small_files;
mod strangers;
mod translation;
mod world;

use hopline_harness::{Need, Test};
use hopline_testkit::namespace::LINK;

/// Mounts go with the process that made them.
const OWN_MOUNTS: &[&str] = &["unshare", "--mount", "--propagation", "private"];

pub(crate) fn tests() -> Vec<Test> {
    let drill = |name: &str, body: fn()| Test::new(name, [LINK], body).long();
    let needs: Vec<Need> = crate::proxy::NEEDS.into_iter().chain([Need::Program("chrt")]).collect();
    let needs_of_clocks: Vec<Need> = crate::proxy::NEEDS.into_iter().chain([Need::Program("cc")]).collect();
    let recipes = recipes::DRILLS.map(|(name, body)| Test::new(name, needs.clone(), body).long().alone());
    let others = vec![
        // Drills about speed have the machine for themselves.
        drill("floods", floods::drill).alone(),
        Test::new("proxies_behind_translated_addresses", crate::proxy::NEEDS, translation::drill)
            .long()
            .alone(),
        drill("garbage_third_messages", strangers::garbage).alone(),
        drill("half_open_handshakes", strangers::half_open).alone(),
        drill("hostile_conversations", strangers::memory).alone(),
        drill("redirection", redirection::drill).alone(),
        Test::new("gateways", [LINK, Need::Program("iptables")], gateways::drill).long().alone(),
        Test::new("clocks", needs_of_clocks, clocks::drill).long().alone(),
        drill("small_files", small_files::drill).alone(),
        drill("schedules", schedules::drill).in_own_process(OWN_MOUNTS),
        drill("a_router_with_a_small_mtu_that_says_nothing", paths::drill),
        drill("an_outage_longer_than_the_silence_limit", outages::drill),
    ];
    others.into_iter().chain(recipes).collect()
}
