//! TUN interface of a tunnel, when its daemon restarts or reloads its file.

use crate::proxy::transfer::{Pace, Transfer};
use crate::proxy::world::{Daemon, Ground, MOBILE, ROUTER, Version, shell, until_or};
use hopline_testkit::namespace::host::open_with_retries;
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Addresses in the tunnel.
const NEAR: &str = "10.82.0.1";
const FAR: &str = "10.82.0.2";
/// Address and route that an operator attaches to the interface in addition to those of the file.
const ATTACHED: &str = "ip address add 10.83.0.1/32 dev dproxy0; ip route add 10.84.0.0/16 dev dproxy0";
/// Commands that list addresses and routes of the interface, those of the file included.
const THERE: &str = "ip -o address show dev dproxy0; ip route show dev dproxy0";

/// Returns the configuration of the router's end of a tunnel to the mobile host.
fn end([local, peer]: [&str; 2], address: &str, ground: &Ground, more: &str) -> String {
    let key = ground.folder.path().join("link.key");
    fs::write(&key, "07".repeat(32)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    format!(
        "[[proxy]]\nkind = \"opaque\"\nlocal = \"{local}\"\npeer = \"{peer}\"\nkey_file = \"{}\"\ntun_addresses = [\"{address}/30\"]\n{more}",
        key.display()
    )
}

fn near(ground: &Ground, more: &str) -> String {
    end([ROUTER[0], MOBILE], NEAR, ground, more)
}

/// Starts the mobile host's end, which stays.
fn far(ground: &Ground) -> Daemon {
    let state = ground.folder.path().join("far");
    let file = ground.folder.path().join("far.toml");
    let text = end([MOBILE, ROUTER[0]], FAR, ground, "");
    fs::write(&file, format!("state_dir = \"{}\"\n{text}", state.display())).unwrap();
    Daemon::begin(&ground.mobile, &file, &state)
}

fn is_attached(ground: &Ground) {
    let there = shell(&ground.router, THERE);
    for what in ["10.83.0.1/32", "10.84.0.0/16", "10.82.0.1/30"] {
        assert!(there.contains(what), "no {what} in\n{there}");
    }
}

/// Checks that a stream through the tunnel, and a socket bound to its interface, survive while `meanwhile` restarts the
/// daemon.
fn goes_on(meanwhile: impl Fn(&Ground, Daemon) -> Daemon) {
    let ground = Ground::new();
    let _far = far(&ground);
    let mut daemon = ground.start(&near(&ground, ""));
    shell(&ground.router, ATTACHED);
    let bound = open_with_retries(&ground.router, || UdpSocket::bind((NEAR, 7000)));
    socket2::SockRef::from(&bound).bind_device(Some(b"dproxy0")).unwrap();
    let hosts = [&ground.router, &ground.mobile];
    let pace = Pace::Chunks(Duration::from_millis(10));
    let stream = Transfer::start(hosts, (FAR, 5001), 2_000_000, pace).unwrap();
    stream.until_arrived(200_000);
    daemon = meanwhile(&ground, daemon);
    stream.arrives("through the tunnel");
    is_attached(&ground);
    let other = open_with_retries(&ground.mobile, || UdpSocket::bind((FAR, 7000)));
    bound.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    other.send_to(b"still bound", (NEAR, 7000)).unwrap();
    assert_eq!(bound.recv(&mut [0; 64]).unwrap(), 11);
    assert!(daemon.ended_by("TERM").success());
    is_attached(&ground);
    let file = ground.folder.path().join("proxy.toml");
    ground.proxy("undo", &file);
    is_attached(&ground);
    assert!(ground.undo_tunnels(&file).status.success());
    assert_eq!(shell(&ground.router, "ip -o link show type tun"), "");
    assert!(!ground.state().join("hopline.rules").exists());
}

pub(crate) fn a_stream_through_a_tunnel_survives_a_restart_of_its_daemon() {
    goes_on(|ground, mut daemon| {
        assert!(daemon.ended_by("TERM").success());
        is_attached(ground);
        ground.start(&near(ground, ""))
    });
}

pub(crate) fn a_stream_through_a_tunnel_survives_the_death_of_its_daemon() {
    goes_on(|ground, mut daemon| {
        daemon.process.kill().unwrap();
        daemon.process.wait().unwrap();
        is_attached(ground);
        ground.start(&near(ground, ""))
    });
}

pub(crate) fn a_stream_through_a_tunnel_survives_a_change_of_parameters() {
    goes_on(|ground, mut daemon| {
        ground.write(&near(ground, "rate_mbps = 50\n"));
        daemon.signal("HUP");
        daemon.wait_until("it has read again", |status| status["reloads"] == 1);
        daemon
    });
}

/// Checks two ends with routes that contain each other's address: the near one has the network on the link, the far one a
/// default route.
fn swallowing(version: Version) {
    let ground = Ground::new();
    let before = ground.listing();
    let (of_mobile, of_router) = (version.mobile(), version.router()[1]);
    let (link, all) = match version {
        Version::V4 => ("10.9.0.0/24", "0.0.0.0/0"),
        Version::V6 => ("fd09::/64", "::/0"),
    };
    let far_state = ground.folder.path().join("far");
    let file = ground.folder.path().join("far.toml");
    let text = end([of_mobile, of_router], FAR, &ground, &format!("routes = [\"{all}\"]\n"));
    fs::write(&file, format!("state_dir = \"{}\"\n{text}", far_state.display())).unwrap();
    let mut far = Daemon::begin(&ground.mobile, &file, &far_state);
    let mut near =
        ground.start(&end([of_router, of_mobile], NEAR, &ground, &format!("routes = [\"{link}\"]\n")));
    for (host, address) in [(&ground.router, of_mobile), (&ground.mobile, version.server())] {
        let route = || shell(host, &format!("ip route get {address}"));
        until_or(|| panic!("{}\n{}", route(), near.log_text()), || route().contains("dev dproxy0"));
    }
    let pace = Pace::Chunks(Duration::from_millis(10));
    let stream = Transfer::start([&ground.router, &ground.mobile], (FAR, 5001), 1_000_000, pace).unwrap();
    stream.arrives("through the tunnel");
    for daemon in [&mut near, &mut far] {
        assert!(!daemon.log_text().contains("does not answer"), "{}", daemon.log_text());
    }
    assert!(near.ended_by("TERM").success());
    assert!(far.ended_by("TERM").success());
    assert!(ground.undo_tunnels(&ground.folder.path().join("proxy.toml")).status.success());
    ground.is_as_before(&before, "ended");
}

pub(crate) fn routes_that_contain_the_peer_do_not_loop_the_tunnel() {
    swallowing(Version::V4);
}

pub(crate) fn ipv6_routes_that_contain_the_peer_do_not_loop_the_tunnel() {
    swallowing(Version::V6);
}

pub(crate) fn an_interface_of_another_program_is_rejected_and_kept() {
    let ground = Ground::new();
    shell(&ground.router, "ip tuntap add dproxy0 mode tun");
    let refused = ground.proxy("run", &ground.write(&near(&ground, "")));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    for words in ["the interface dproxy0 is there already", "another tun", "remove it"] {
        assert!(said.contains(words), "no {words}: {said}");
    }
    ground.proxy("undo", &ground.write(&near(&ground, "")));
    assert!(shell(&ground.router, "ip -o link show type tun").contains("dproxy0"));
}

pub(crate) fn an_interface_that_the_file_no_longer_names_is_removed_by_a_reload() {
    let ground = Ground::new();
    let mut daemon = ground.start(&near(&ground, "routes = [\"10.99.0.0/16\"]\n"));
    let tuns = || shell(&ground.router, "ip -o link show type tun");
    let reloads = |daemon: &mut Daemon, text: &str, count: u64| {
        ground.write(text);
        daemon.signal("HUP");
        daemon.wait_until("it has read again", |status| status["reloads"] == count);
    };
    // Another address replaces the first one.
    reloads(&mut daemon, &near(&ground, "").replace("10.82.0.1/30", "10.82.0.9/30"), 1);
    let there = shell(&ground.router, THERE);
    assert!(there.contains("10.82.0.9/30") && !there.contains("10.82.0.1/30"), "{there}");
    // An interface that is removed with its proxy.
    reloads(&mut daemon, &near(&ground, "tun = \"short0\"\ntun_lifetime = \"process\"\n"), 2);
    assert!(tuns().contains("short0") && !tuns().contains("dproxy0"), "{}", tuns());
    assert!(daemon.ended_by("TERM").success());
    until_or(|| panic!("{}", tuns()), || tuns().is_empty());
    assert!(!ground.state().join("hopline.rules").exists(), "nothing is left to be undone");
}
