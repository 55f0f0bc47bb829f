//! A gateway on the router and an exit on the server: announcement of TPA in TCP handshakes, and the logs of both.

use crate::docs::page::{Kind, Page};
use crate::proxy::transfer::run_transfer;
use crate::proxy::world::*;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// Returns the configuration of the server's daemon: it is an exit for itself.
fn an_exit(server: IpAddr) -> String {
    let at = SocketAddr::new(server, 7172);
    format!(
        "[[proxy]]\nkind = \"gateway-exit\"\nlisten = \"{at}\"\nallowed = [\"{server}\"]\nannounce = \"fixed\"\n"
    )
}

/// Returns the configuration of the router's daemon.
fn a_gateway(server: IpAddr) -> String {
    let at = SocketAddr::new(server, 7172);
    format!(
        "[[proxy]]\nkind = \"gateway\"\nexit = \"{at}\"\nidentity = \"router\"\ndivert = \"mobile\"\nannounce = \"fixed\"\n"
    )
}

pub(crate) fn a_host_that_announced_tpa_is_reached_over_it_from_the_second_connection_on() {
    reach(&Ground::new(), Version::V4);
}

/// Lets a gateway learn of an exit and connect to it.
pub(crate) fn reach(ground: &Ground, version: Version) {
    let before = ground.listing();
    let server: IpAddr = version.server().parse().unwrap();
    let (an_exit, a_gateway) = (an_exit(server), a_gateway(server));
    let carry = |port| transfer_to_server(ground, version, port);
    let key = ground.folder.path().join("key");
    secret(&key, &"07".repeat(32));
    let mut gateway = ground.start(&format!("{a_gateway}key_file = \"{}\"\n", key.display()));
    // The server has no exit yet.
    carry(8000);
    await_carried(&gateway, [1, 0, 0]);
    // The cache disappears with the gateway.
    assert!(gateway.ended_by("TERM").success());
    ground.is_as_before(&before, "told to end");
    let mut exit = start_exit(ground, &format!("{an_exit}peers = [\"router = {}\"]\n", key.display()));
    let mut gateway = ground.start(&format!("{a_gateway}key_file = \"{}\"\n", key.display()));
    for (port, expected) in [(8001, [1, 0, 0]), (8002, [1, 1, 0]), (8003, [1, 2, 0])] {
        carry(port);
        await_carried(&gateway, expected);
    }
    assert_eq!(gateway.metric("gateway", "tpa_answers"), 1);
    assert_eq!(exit.metric("gateway-exit", "heard_syns"), 1);
    assert!(exit.ended_by("TERM").success() && gateway.ended_by("TERM").success());
    ground.is_as_before(&before, "told to end again");
}

pub(crate) fn each_change_of_the_other_gateway_is_logged_once() {
    let ground = Ground::new();
    let [key, other] = [("key", "07"), ("other", "08")].map(|(name, byte)| {
        let path = ground.folder.path().join(name);
        secret(&path, &byte.repeat(32));
        path.display().to_string()
    });
    let exit = |key: &str| {
        let text = "[[proxy]]\nkind = \"gateway-exit\"\ntransport = \"tpa-wide\"\n";
        start_exit(&ground, &format!("{text}peers = [\"router = {key}\"]\n"))
    };
    let gateway = ground.start(&format!(
        "[[proxy]]\nkind = \"gateway\"\nexit = \"10.8.0.1:7172\"\nidentity = \"router\"\ntransport = \"tpa-wide\"\n\
         key_file = \"{key}\"\nforward = [\"127.0.0.1:8080 = 10.8.0.1:80\"]\nfallback = \"tcp\"\n\
         fallback_after_s = 0.5\nretry_after_s = 0.2\n"
    ));
    let absent = "does not answer: connections go by TCP, IN CLEAR";
    await_log_line(
        &gateway,
        "while the exit 10.8.0.1:7172 does not answer, connections go by TCP, IN CLEAR",
        1,
    );
    await_log_line(&gateway, absent, 1);
    assert_eq!(gateway.metric("gateway", "exit_present"), 0);
    let mut wrong = exit(&other);
    await_log_line(
        &gateway,
        "has another key, or does not know this entrance by its name: connections are accepted and reset",
        1,
    );
    await_log_line(&wrong, "calls itself router and has another key: it is refused", 1);
    assert!(wrong.ended_by("TERM").success());
    await_log_line(&gateway, absent, 2);
    let mut right = exit(&key);
    await_log_line(&gateway, "answers: connections go through the trunk", 1);
    await_log_line(&right, "the entrance router has opened a trunk from 10.8.0.254:", 1);
    assert!(right.ended_by("KILL").code().is_none());
    await_log_line(&gateway, absent, 3);
    drop(gateway);
}

/// Returns the file of rules in the recipe for two sites, for the server's network.
fn rule_of_the_recipe() -> String {
    let page = Page::load(&crate::docs::root().join("docs/recipes/two-sites.md"));
    let is_rule = |kind: &Kind| matches!(kind, Kind::File(_, name) if name == "site-b.nft");
    let example = page.examples.iter().find(|example| is_rule(&example.kind)).unwrap();
    example.text.replace("10.80.2.0/24", "10.8.0.0/24").replace("eth1", "mobile")
}

pub(crate) fn without_its_entrance_no_connection_leaves_unencrypted() {
    let ground = Ground::new();
    let key = ground.folder.path().join("key");
    secret(&key, &"07".repeat(32));
    let key = key.display();
    let rule = ground.folder.path().join("site-b.nft");
    fs::write(&rule, rule_of_the_recipe()).unwrap();
    let count = "table inet seen { chain input { type filter hook input priority 0; iifname fixed meta l4proto tcp counter; }; }";
    shell(&ground.server, &format!("nft '{count}'"));
    let seen = || shell(&ground.server, "nft list table inet seen");
    let server = SocketAddr::new(Version::V4.server().parse().unwrap(), 8000);
    let called = || {
        let call = || TcpStream::connect_timeout(&server, Duration::from_millis(1500)).map(drop);
        ground.mobile.run(call).unwrap().map_err(|error| error.kind())
    };
    let _listener = ground.server.run(|| TcpListener::bind(("0.0.0.0", 8000))).unwrap().unwrap();
    // Without the rule a connection crosses, and the counter shows it.
    assert_eq!(called(), Ok(()));
    assert!(!seen().contains("counter packets 0 "), "{}", seen());
    shell(&ground.server, &format!("nft 'delete table inet seen; {count}'"));

    shell(&ground.router, &format!("nft -f {}", rule.display()));
    assert_eq!(called(), Err(ErrorKind::TimedOut), "before the first start");
    let _exit = start_exit(
        &ground,
        &format!(
            "[[proxy]]\nkind = \"gateway-exit\"\ntransport = \"tpa-wide\"\npeers = [\"site-a = {key}\"]\nallowed = [\"10.8.0.0/24\"]\n"
        ),
    );
    for end in ["TERM", "KILL"] {
        let mut entrance = ground.start(&format!(
            "[[proxy]]\nkind = \"gateway\"\nexit = \"10.8.0.1:7172\"\nidentity = \"site-a\"\ntransport = \"tpa-wide\"\n\
             key_file = \"{key}\"\ndivert = \"mobile\"\ndestinations = [\"10.8.0.0/24\"]\n"
        ));
        until_or(|| panic!("{}", entrance.log_text()), || entrance.metric("gateway", "exit_present") == 1);
        transfer_to_server(&ground, Version::V4, 8001);
        await_carried(&entrance, [0, 1, 0]);
        entrance.ended_by(end);
        // The keeper of a killed daemon removes its rules.
        until_or(|| panic!("{end}: {}", ground.listing()), || !ground.listing().contains("tproxy"));
        assert_eq!(called(), Err(ErrorKind::TimedOut), "{end}");
    }
    assert!(seen().contains("counter packets 0 "), "{}", seen());
}

/// Waits until it has logged `line` `times` times.
fn await_log_line(daemon: &Daemon, line: &str, times: usize) {
    let count = || daemon.log_text().lines().filter(|said| said.contains(line)).count();
    until_or(|| panic!("not {times} times \"{line}\": {}", daemon.log_text()), || count() >= times);
    assert_eq!(count(), times, "\"{line}\": {}", daemon.log_text());
}

/// Sends data from the mobile host to the server, at this port.
fn transfer_to_server(ground: &Ground, version: Version, port: u16) {
    run_transfer([&ground.mobile, &ground.server], (version.server(), port), 100_000);
}

/// Waits for the numbers of connections: by TCP without an announcement, by TPA, and by TCP without an exit.
fn await_carried(gateway: &Daemon, expected: [u64; 3]) {
    let names = ["unannounced_connections", "tpa_connections", "tcp_connections"];
    let carried = || names.map(|name| gateway.metric("gateway", name));
    until_or(
        || panic!("{:?}, not {expected:?}: {}", carried(), gateway.log_text()),
        || carried() == expected,
    );
}

/// Starts the daemon of the server.
fn start_exit(ground: &Ground, text: &str) -> Daemon {
    let state: PathBuf = ground.folder.path().join("exit-state");
    let file = ground.folder.path().join("exit.toml");
    fs::write(&file, format!("state_dir = \"{}\"\n{text}", state.display())).unwrap();
    let mut daemon = Daemon::begin(&ground.server, &file, &state);
    daemon.wait_until("the exit runs", |status| status["proxies"][0]["state"] == "running");
    daemon
}
