//! Connection tracking: the daemon does not enable it, and makes its rules for it as soon as something else enables it.

use crate::proxy::ipv6;
use crate::proxy::nat::{MIDDLEBOXES, NATS, Nat, check_repairs, one_way, run_concurrently};
use crate::proxy::start::BOTH;
use crate::proxy::transfer::{Pace, Transfer, run_transfer};
use crate::proxy::world::{Daemon, Ground, MOBILE, SERVER, shell, until_or};
use hopline_testkit::namespace::host::open_with_retries;
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Table of the rules that need connection tracking.
const TABLE: &str = "table inet hopline-hopline.nat";

/// Returns the number of connections that the router tracks.
fn tracked(ground: &Ground) -> u64 {
    shell(&ground.router, "cat /proc/sys/net/netfilter/nf_conntrack_count").trim().parse().unwrap()
}

/// Sends datagrams of `flows` flows through the router.
fn datagrams(ground: &Ground, flows: usize) {
    let server = open_with_retries(&ground.server, || UdpSocket::bind((SERVER, 4000)));
    server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for _ in 0..flows {
        let mobile = open_with_retries(&ground.mobile, || UdpSocket::bind((MOBILE, 0)));
        mobile.send_to(b"one", (SERVER, 4000)).unwrap();
        let (_, from) = server.recv_from(&mut [0; 8]).unwrap();
        server.send_to(b"two", from).unwrap();
    }
}

/// Waits for the rules that need connection tracking.
fn until_its_rules_are_there(ground: &Ground, daemon: &Daemon) {
    until_or(|| panic!("{}\n{}", ground.listing(), daemon.log_text()), || ground.listing().contains(TABLE));
    until_or(
        || panic!("{}", daemon.log_text()),
        || daemon.log_text().contains("connection tracking has begun"),
    );
    assert_eq!(daemon.status()["connection_tracking"], "in use");
}

/// Any rule with a conntrack expression enables tracking in the whole namespace.
pub(crate) fn proxies_do_not_enable_connection_tracking() {
    let ground = Ground::new();
    let before = ground.listing();
    let file = ground.write(BOTH);
    let print = |what: &str| String::from_utf8(ground.proxy(what, &file).stdout).unwrap();
    assert!(print("check").contains("connection tracking is not in use"), "{}", print("check"));
    assert!(!print("setup --dry-run").contains(TABLE));
    let mut daemon = ground.start_file(&file);
    let crosses = || {
        datagrams(&ground, 20);
        for port in [5001, 5002] {
            run_transfer([&ground.mobile, &ground.server], (SERVER, port), 100_000);
        }
        assert_eq!(tracked(&ground), 0, "connections are tracked");
        let rules = shell(&ground.router, "nft list ruleset");
        assert!(!rules.split_whitespace().any(|word| word == "ct"), "{rules}");
        assert!(rules.contains("table inet hopline-hopline {"), "{rules}");
    };
    crosses();
    assert_eq!(daemon.status()["connection_tracking"], "not in use");
    daemon.signal("HUP");
    daemon.wait_until("it has read again", |status| status["reloads"] == 1);
    crosses();
    assert!(daemon.ended_by("TERM").success());
    ground.is_as_before(&before, "told to end");
}

/// This happens if Docker is installed, or a firewall is loaded, after the daemon has started.
pub(crate) fn nat_that_is_enabled_later_gets_its_rules() {
    let cases = [(0, &NATS[0]), (0, &NATS[1]), (2, &NATS[0]), (2, &NATS[1]), (0, &ipv6::NATS[1])];
    run_concurrently(&cases, |&(middlebox, nat)| {
        let middlebox = &MIDDLEBOXES[middlebox];
        begins(
            nat,
            |ground| middlebox.start(ground, ""),
            |ground, daemon| {
                check_repairs(middlebox, ground, nat, daemon);
            },
        );
    });
}

/// It has kept the right to make rules.
pub(crate) fn an_unprivileged_daemon_gets_the_rules_later_and_a_reload_keeps_them() {
    let (middlebox, nat) = (&MIDDLEBOXES[2], &NATS[1]);
    let start = |ground: &Ground| {
        fs::set_permissions(ground.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        middlebox.start(ground, "user = \"nobody\"")
    };
    begins(nat, start, |ground, daemon| {
        // Existing rules need not be listed again.
        shell(&ground.router, "nft delete table ip router");
        daemon.signal("HUP");
        daemon.wait_until("it has read again", |status| status["reloads"] == 1);
        assert!(ground.listing().contains(TABLE), "{}", ground.listing());
        shell(&ground.router, nat.rules);
        check_repairs(middlebox, ground, nat, daemon);
    });
}

/// Starts a daemon, enables NAT, waits for the rules, tries, and ends the daemon.
fn begins(nat: &Nat, start: impl Fn(&Ground) -> Daemon, tries: impl Fn(&Ground, &mut Daemon)) {
    let ground = one_way(nat);
    let mut daemon = start(&ground);
    assert!(!ground.listing().contains(TABLE), "{}", ground.listing());
    shell(&ground.router, nat.rules);
    until_its_rules_are_there(&ground, &daemon);
    tries(&ground, &mut daemon);
    assert!(daemon.ended_by("TERM").success());
    let left = ground.listing();
    assert!(!left.to_lowercase().contains("hopline"), "{left}");
}

/// Rules of another program that no listing shows, such as those of Open vSwitch: their tracking is detected.
pub(crate) fn tracking_without_a_visible_rule_is_detected() {
    let ground = Ground::new();
    let mut daemon = ground.start(BOTH);
    // Listings of nft and iptables do not include the tables of legacy iptables.
    shell(&ground.router, "iptables-legacy -w -A FORWARD -m conntrack --ctstate INVALID -j DROP");
    assert_eq!(daemon.status()["connection_tracking"], "not in use");
    datagrams(&ground, 1);
    until_its_rules_are_there(&ground, &daemon);
    assert!(daemon.ended_by("TERM").success());
}

/// A firewall sees the same addresses and ports on both halves of such a connection.
pub(crate) fn connections_split_before_tracking_continue() {
    let ground = Ground::new();
    let mut daemon = ground.start("[[proxy]]\nkind = \"split\"\ninterface = \"mobile\"\n");
    let hosts = [&ground.mobile, &ground.server];
    let under_way =
        Transfer::start(hosts, (SERVER, 5002), 4_000_000, Pace::Chunks(Duration::from_millis(10))).unwrap();
    under_way.until_arrived(100_000);
    shell(
        &ground.router,
        "nft 'table inet router { chain in { type filter hook input priority filter; ct state established,related accept; }; \
         chain filter { type filter hook forward priority filter; ct state invalid drop; }; }'",
    );
    until_its_rules_are_there(&ground, &daemon);
    let arrived = under_way.arrived();
    assert!(arrived < 4_000_000, "it was under way");
    run_transfer(hosts, (SERVER, 5003), 100_000);
    under_way.arrives("split before");
    assert_eq!(daemon.metric("split", "connections_accepted"), 2);
    assert!(daemon.ended_by("TERM").success());
}
