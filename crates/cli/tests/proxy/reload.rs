//! SIGHUP while connections are open.

use crate::proxy::start::BOTH;
use crate::proxy::transfer::{Pace, Transfer, run_transfer};
use crate::proxy::world::{Daemon, Ground, SERVER, shell, until_or};
use std::time::Duration;

const MTCP: &str = "[[proxy]]\nkind = \"mtcp\"\ninterface = \"fixed\"\nports = [5003]\n";

/// Makes the daemon reload this text.
fn reload_file(ground: &Ground, daemon: &mut Daemon, text: &str, reloads: u64) {
    ground.write(text);
    daemon.signal("HUP");
    daemon.wait_until("it has read again", |status| status["reloads"] == reloads);
}

pub(crate) fn connections_continue_during_a_reload() {
    let ground = Ground::new();
    let before = ground.listing();
    let mut daemon = ground.start(BOTH);
    let hosts = [&ground.mobile, &ground.server];
    let [snooped, split] = [5001, 5002].map(|port| {
        Transfer::start(hosts, (SERVER, port), 4_000_000, Pace::Chunks(Duration::from_millis(8))).unwrap()
    });
    [&snooped, &split].into_iter().for_each(|under_way| under_way.until_arrived(100_000));
    let tuned = BOTH.replacen("ports = [5001]", "ports = [5001]\nlocal_limit = 9", 1).replacen(
        "ports = [5002]",
        "ports = [5002]\nmobile_congestion = \"reno\"",
        1,
    );
    reload_file(&ground, &mut daemon, &tuned, 1);
    assert!(daemon.log_text().contains("has other parameters"), "{}", daemon.log_text());
    reload_file(&ground, &mut daemon, &format!("{tuned}{MTCP}"), 2);
    let kinds = |status: &serde_json::Value| -> Vec<String> {
        let proxies = status["proxies"].as_array().unwrap();
        proxies.iter().map(|proxy| proxy["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&daemon.status()), ["snoop", "split", "mtcp"]);
    reload_file(&ground, &mut daemon, &tuned, 3);
    assert_eq!(kinds(&daemon.status()), ["snoop", "split"]);
    let rules = ground.listing();
    ground.write("[[proxy]]\nkind = \"snoop\"\n");
    daemon.signal("HUP");
    until_or(
        || panic!("{}", daemon.log_text()),
        || daemon.log_text().contains("everything goes on as before"),
    );
    assert_eq!((daemon.status()["reloads"].as_u64(), ground.listing()), (Some(3), rules));
    // The ports to split may change while connections are open.
    reload_file(&ground, &mut daemon, &tuned.replace("[5002]", "[5002, 5004]"), 4);
    assert!(snooped.arrived() < 4_000_000 && split.arrived() < 4_000_000, "they were under way all the time");
    snooped.arrives("through snoop");
    split.arrives("through split connections");
    for proxy in daemon.status()["proxies"].as_array().unwrap() {
        assert_eq!((&proxy["state"], &proxy["restarts"]), (&"running".into(), &0.into()), "{proxy}");
    }
    assert!(daemon.ended_by("TERM").success());
    ground.is_as_before(&before, "read again");
}

pub(crate) fn many_signals_cause_reloads_only() {
    let ground = Ground::new();
    let before = ground.listing();
    let mut daemon = ground.start(BOTH);
    let (one, other) = (BOTH.to_owned(), format!("{BOTH}{MTCP}"));
    for text in [&one, &other].into_iter().cycle().take(20) {
        ground.write(text);
        daemon.signal("HUP");
    }
    daemon.wait_until("it has the last file", |status| status["proxies"].as_array().unwrap().len() == 3);
    run_transfer([&ground.mobile, &ground.server], (SERVER, 5003), 100_000);
    assert!(daemon.ended_by("TERM").success());
    ground.is_as_before(&before, "read again");
}

pub(crate) fn rules_removed_by_another_program_are_restored() {
    let ground = Ground::new();
    let mut daemon = ground.start(BOTH);
    let ours = || -> Vec<String> {
        let listing = ground.listing();
        let mut ours: Vec<String> = listing
            .lines()
            .filter(|line| line.to_lowercase().contains("hopline"))
            .map(str::to_owned)
            .collect();
        // A chain that is made again comes after the existing ones.
        ours.sort();
        ours
    };
    let rules = ours();
    assert!(rules.len() > 2, "{rules:?}");
    // A firewall that is loaded again removes them like this.
    for removal in ["nft flush ruleset", "iptables -w -t security -D FORWARD 1"] {
        shell(&ground.router, removal);
        assert_ne!(ours(), rules, "{removal}");
        let reloads = daemon.status()["reloads"].as_u64().unwrap();
        reload_file(&ground, &mut daemon, BOTH, reloads + 1);
        assert_eq!(ours(), rules, "{removal}");
    }
    run_transfer([&ground.mobile, &ground.server], (SERVER, 5001), 100_000);
    let is_seen = || daemon.metric("snoop", "segments_from_mobile") > 0;
    until_or(|| panic!("{}", daemon.status()), is_seen);
    assert!(daemon.ended_by("TERM").success());
    assert_eq!(ours(), Vec::<String>::new());
}

pub(crate) fn queues_and_ports_may_be_exchanged() {
    let ground = Ground::new();
    let before = ground.listing();
    let two = |queues: [u16; 2]| {
        let proxy = |name: &str, queue, port: u16| {
            format!(
                "[[proxy]]\nkind = \"snoop\"\nname = \"{name}\"\ninterface = \"mobile\"\nqueue = {queue}\nports = [{port}]\n"
            )
        };
        proxy("a", queues[0], 5001) + &proxy("b", queues[1], 5005)
    };
    let mut daemon = ground.start(&two([1, 2]));
    reload_file(&ground, &mut daemon, &two([2, 1]), 1);
    daemon.wait_until("both run", |status| {
        status["proxies"].as_array().unwrap().iter().all(|proxy| proxy["state"] == "running")
    });
    run_transfer([&ground.mobile, &ground.server], (SERVER, 5001), 100_000);
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("a", "packets") > 0);
    assert_eq!(daemon.metric("b", "packets"), 0);
    assert!(daemon.ended_by("TERM").success());
    ground.is_as_before(&before, "changed hands");
}
