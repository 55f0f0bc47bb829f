//! Fault-injection tests of `hopline send` and `recv`, and of gateways, with the real program and real sockets. They take
//! minutes: `make drills`. Only their own namespaces are changed.
//!
//! | file | tests |
//! |---|---|
//! | `schedules` | 200 schedules of kills, Ctrl-C, restarts, outages, rebound NATs, losses, full disks |
//! | `outages` | silence longer than any time limit, in real time |
//! | `floods` | a transfer through a receiver under each flood, compared with one without |
//! | `strangers` | handshakes that are never finished or finished with garbage, and data beyond a hole |
//! | `redirection` | datagrams to a third party after an attacker forged its address |
//! | `small_files` | a tree of 20,000 files over a long path |
//! | `clocks` | clocks that are set, while daemons run and before they restart |
//! | `gateways` | new connections through a trunk, a dead exit, an attacker between the gateways |
//! | `paths` | a router with a small MTU that sends no ICMP |
//! | `translation` | proxies on a router with NAT, compared with one without, and with no proxy |
//! | `delay` | a path with a delay towards a router |
//! | `recipes` | the tables of the recipes for proxies |
//! | `attacker` | a peer that speaks TPA-wide and misbehaves |
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

/// Mounts disappear with the process that made them.
const OWN_MOUNTS: &[&str] = &["unshare", "--mount", "--propagation", "private"];

pub(crate) fn tests() -> Vec<Test> {
    let drill = |name: &str, body: fn()| Test::new(name, [LINK], body).long();
    let needs: Vec<Need> = crate::proxy::NEEDS.into_iter().chain([Need::Program("chrt")]).collect();
    let needs_of_clocks: Vec<Need> = crate::proxy::NEEDS.into_iter().chain([Need::Program("cc")]).collect();
    let recipes = recipes::DRILLS.map(|(name, body)| Test::new(name, needs.clone(), body).long().alone());
    let others = vec![
        // Tests of speed run while no other test does.
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
