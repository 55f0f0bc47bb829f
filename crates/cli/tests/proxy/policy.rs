//! Routers with policy routing (ip-rule(8)).

use crate::proxy::transfer::run_transfer;
use crate::proxy::world::{Daemon, Ground, MOBILE, SERVER, hopline, secret, shell, until_or};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Rules: the mobile host is reached from the server alone, by a table of its own.
const BY_INTERFACE: &str = "ip rule add pref 50 iif fixed lookup 100; ip route add 10.9.0.0/24 dev mobile table 100; \
                            ip route del 10.9.0.0/24 dev mobile";
/// Rules: packets of the mobile host have a table of their own, and the main one has no route to the server.
const BY_SOURCE: &str = "ip rule add pref 51 from 10.9.0.1 lookup 101; ip route add 10.8.0.0/24 dev fixed table 101; \
                         ip route del 10.8.0.0/24 dev fixed";

fn calls(ground: &Ground) {
    run_transfer([&ground.mobile, &ground.server], (SERVER, 80), 100_000);
    run_transfer([&ground.server, &ground.mobile], (MOBILE, 80), 100_000);
}

fn is(daemon: &Daemon, figures: [&str; 2], expected: [u64; 2]) {
    let read = || figures.map(|name| daemon.metric("it", name));
    until_or(|| panic!("{:?} is not {expected:?}: {}", read(), daemon.status()), || read() == expected);
}

pub(crate) fn a_connection_with_another_route_is_not_split() {
    let ground = Ground::new();
    shell(&ground.router, BY_SOURCE);
    let daemon = ground.start("[[proxy]]\nname = \"it\"\nkind = \"split\"\ninterface = \"mobile\"\n");
    // By that rule, packets with the mobile host's address take the same route as its own; the other direction takes the
    // main table.
    run_transfer([&ground.mobile, &ground.server], (SERVER, 80), 100_000);
    is(&daemon, ["connections_accepted", "unfollowed_connects"], [1, 0]);
    shell(&ground.router, BY_INTERFACE);
    calls(&ground);
    is(&daemon, ["connections_accepted", "unfollowed_connects"], [1, 2]);
}

fn gateway(ground: &Ground, fallback: &str) -> Daemon {
    shell(&ground.router, BY_INTERFACE);
    let key = ground.folder.path().join("key");
    secret(&key, &"07".repeat(32));
    ground.start(&format!(
        "[[proxy]]\nkind = \"gateway\"\nname = \"it\"\ndivert = \"mobile\"\nexit = \"10.8.0.1:7172\"\nidentity = \"router\"\n\
         {fallback}\nkey_file = \"{}\"\n",
        key.display()
    ))
}

pub(crate) fn a_connection_with_another_route_bypasses_the_gateway() {
    let ground = Ground::new();
    let daemon = gateway(&ground, "fallback = \"tcp\"\nfallback_after_s = 0.1");
    run_transfer([&ground.mobile, &ground.server], (SERVER, 80), 100_000);
    is(&daemon, ["tcp_connections", "unfollowed_syns"], [0, 1]);
}

pub(crate) fn such_a_connection_is_rejected_by_a_gateway_without_unencrypted_fallback() {
    let ground = Ground::new();
    let server = ground.server.run(|| TcpListener::bind((SERVER, 80))).unwrap().unwrap();
    server.set_nonblocking(true).unwrap();
    let daemon = gateway(&ground, "fallback = \"refuse\"");
    let to = SocketAddr::new(SERVER.parse().unwrap(), 80);
    ground.mobile.run(|| TcpStream::connect_timeout(&to, Duration::from_millis(500))).unwrap().unwrap_err();
    is(&daemon, ["tcp_connections", "refused_syns"], [0, 1]);
    assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

pub(crate) fn routing_rules_with_further_criteria_are_reported() {
    let ground = Ground::new();
    let file = ground.write(
        "[[proxy]]\nkind = \"snoop\"\ninterface = \"mobile\"\n[[proxy]]\nkind = \"split\"\ninterface = \"fixed\"\n",
    );
    let told = || String::from_utf8(ground.proxy("check", &file).stderr).unwrap();
    assert!(!told().contains("rules of routing"), "{}", told());
    shell(&ground.router, BY_INTERFACE);
    for words in
        ["`50: iif fixed lookup 100`", "\"snoop\"", "unfollowed_packets", "\"split\"", "unfollowed_connects"]
    {
        assert!(told().contains(words), "no {words}: {}", told());
    }
    let mut doctor = hopline();
    doctor.arg("doctor");
    let doctor = String::from_utf8(ground.ends(doctor).stdout).unwrap();
    let row = doctor.lines().find(|line| line.starts_with("routes by destination")).unwrap();
    assert!(row.contains("50: iif fixed lookup 100"), "{row}");
    let daemon = ground.start_file(&file);
    // The rule that diverts connections to this machine is hopline's own.
    assert!(!told().contains("lookup 26735"), "{}", told());
    assert!(daemon.log_text().contains("unfollowed_packets"), "{}", daemon.log_text());
}
