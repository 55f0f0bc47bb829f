//! End of a daemon in any way: nothing of it remains. Missing requirements that it can do without for a time: it waits for
//! them.

use crate::proxy::start::BOTH;
use crate::proxy::transfer::{End, Pace, Transfer, in_a_thread, run_transfer};
use crate::proxy::world::{
    Ground, MOBILE, PATIENCE, ROUTER, SERVER, now, processes_with, secret, shell, signal, until_or,
};
use hopline_linux::sched::{Priority, request_real_time};
use hopline_linux::veth::{self, Offload};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::thread;
use std::time::Duration;

pub(crate) fn a_terminated_daemon_leaves_no_rule_route_process_or_socket() {
    let ground = Ground::new();
    let before = ground.listing();
    for name in ["TERM", "INT"] {
        let mut daemon = ground.start(BOTH);
        run_transfer([&ground.server, &ground.mobile], (MOBILE, 4000), 100_000);
        assert_ne!(ground.listing(), before);
        assert!(daemon.ended_by(name).success(), "{}", daemon.log_text());
        ground.is_as_before(&before, name);
    }
}

pub(crate) fn a_terminated_daemon_resets_split_connections_and_keeps_others() {
    let ground = Ground::new();
    let mut daemon = ground.start(BOTH);
    let [snooped, split] = [5001, 5002].map(|port| slow(&ground, port));
    [&snooped, &split].into_iter().for_each(|under_way| under_way.until_arrived(200_000));
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("split", "connections_open") > 0);
    assert!(daemon.ended_by("TERM").success());
    snooped.arrives("through snoop");
    let (end, sent) = split.ends();
    assert!(matches!(end, End::Broken(_)), "{end:?}");
    assert!(sent.is_err(), "who sends is told, too");
}

/// Starts a transfer of 4 MB within two seconds or so, at a port that BOTH serves.
fn slow(ground: &Ground, port: u16) -> Transfer {
    let hosts = [&ground.mobile, &ground.server];
    Transfer::start(hosts, (SERVER, port), 4_000_000, Pace::Chunks(Duration::from_millis(8))).unwrap()
}

pub(crate) fn a_killed_daemon_is_cleaned_up_by_its_keeper() {
    let ground = Ground::new();
    let before = ground.listing();
    let mut daemon = ground.start(BOTH);
    daemon.process.kill().unwrap();
    daemon.process.wait().unwrap();
    ground.is_as_before(&before, "killed");
}

pub(crate) fn a_daemon_killed_during_its_start_leaves_nothing() {
    let ground = Ground::new();
    let before = ground.listing();
    let file = ground.write(BOTH);
    for ms in (0..120).step_by(6) {
        let mut daemon = ground.begin(&file);
        thread::sleep(Duration::from_millis(ms));
        daemon.process.kill().unwrap();
        daemon.process.wait().unwrap();
        ground.is_as_before(&before, &format!("killed after {ms} ms"));
    }
}

pub(crate) fn a_killed_daemon_can_be_restarted_at_once() {
    let ground = Ground::new();
    let before = ground.listing();
    let file = ground.write(BOTH);
    for _ in 0..3 {
        let mut daemon = ground.start_file(&file);
        daemon.process.kill().unwrap();
        daemon.process.wait().unwrap();
    }
    let mut daemon = ground.start_file(&file);
    run_transfer([&ground.mobile, &ground.server], (SERVER, 5002), 100_000);
    assert!(daemon.ended_by("TERM").success());
    ground.is_as_before(&before, "started again");
}

pub(crate) fn a_daemon_killed_with_its_keeper_is_cleaned_up_by_the_next_start() {
    let ground = Ground::new();
    let before = ground.listing();
    let file = ground.write(BOTH);
    let mut daemon = ground.start_file(&file);
    for process in processes_with(ground.folder.path().to_str().unwrap()) {
        signal(process, "KILL");
    }
    daemon.process.wait().unwrap();
    assert_ne!(ground.listing(), before, "nobody is there to clean up");
    // Without a reader of the queue and without a listener, traffic passes.
    for port in [5001, 5002] {
        run_transfer([&ground.mobile, &ground.server], (SERVER, port), 100_000);
    }
    let mut daemon = ground.start_file(&file);
    assert!(daemon.ended_by("TERM").success());
    ground.is_as_before(&before, "started again");
}

pub(crate) fn a_vanished_interface_is_waited_for() {
    let ground = Ground::new();
    let mut daemon = ground.start(BOTH);
    let state_is =
        |state: &'static str| move |status: &serde_json::Value| status["proxies"][0]["state"] == state;
    shell(&ground.router, "ip link del mobile");
    daemon.wait_until("snoop waits", state_is("waiting"));
    let status = daemon.status();
    assert!(status["proxies"][0]["why"].as_str().is_some_and(|why| !why.is_empty()), "{status}");
    veth::join([&ground.mobile, &ground.router], "mobile", Offload::SinglePackets).unwrap();
    ground.address_mobile();
    daemon.wait_until("snoop runs again", state_is("running"));
    assert_eq!(daemon.status()["proxies"][0]["restarts"], 1);
    let offered = daemon.metric("snoop", "packets");
    for port in [5001, 5002] {
        run_transfer([&ground.mobile, &ground.server], (SERVER, port), 100_000);
    }
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("snoop", "packets") > offered);
    assert!(daemon.ended_by("TERM").success());
}

/// Returns a configuration with a proxy of each kind on the router, for the interface to the mobile host.
pub(crate) fn each_kind(ground: &Ground) -> String {
    let folder = ground.folder.path();
    secret(&folder.join("link.key"), &"07".repeat(32));
    secret(&folder.join("cells.key"), &"07".repeat(16));
    fs::write(folder.join("samples"), "").unwrap();
    let folder = folder.display();
    let [near, far] = ROUTER;
    let on = "interface = \"mobile\"";
    let ends = format!("local = \"{near}\"\npeer = \"{MOBILE}\"\nkey_file = \"{folder}/link.key\"");
    let cells = format!("key_file = \"{folder}/cells.key\"\naddress = \"{near}\"");
    let network = "network = \"10.10.0.0/24\"";
    [
        ("snoop", format!("{on}\nports = [5001]")),
        ("mtcp", format!("{on}\nports = [5003]")),
        ("nack", format!("{on}\nports = [5006]")),
        ("nack-host", on.to_owned()),
        ("split", format!("{on}\nports = [5002]")),
        ("d-proxy", format!("{on}\n{ends}\nport = 1023")),
        ("opaque", format!("{ends}\nport = 1024\nroutes = [\"10.99.0.0/24\"]")),
        ("gateway-exit", format!("peers = [\"drone-7 = {folder}/link.key\"]")),
        ("home-agent", format!("{cells}\n{network}\nmobiles = [\"10.10.0.7\"]\ninterfaces = [\"mobile\"]")),
        ("base-station", format!("{cells}\n{network}\nhome_agent = \"{far}\"\nwired = \"fixed\"\n{on}")),
        (
            "mobile-host",
            format!("key_file = \"{folder}/link.key\"\naddress = \"{near}\"\ninterfaces = [\"mobile\"]"),
        ),
        (
            "neighborhood-red",
            format!(
                "{on}\nsamples = \"file:{folder}/samples\"\nneighborhood_red = {{ bandwidth_mbps = 54 }}"
            ),
        ),
    ]
    .map(|(kind, rest)| format!("[[proxy]]\nkind = \"{kind}\"\n{rest}\n"))
    .concat()
}

/// Kinds that need the interface, and stop without it.
pub(crate) const TIED: [&str; 8] =
    ["snoop", "mtcp", "nack", "nack-host", "d-proxy", "home-agent", "base-station", "neighborhood-red"];

pub(crate) fn each_kind_resumes_when_its_interface_returns() {
    let ground = Ground::new();
    let mut daemon = ground.start(&each_kind(&ground));
    let those = |status: &Json, state: &str| -> Vec<String> {
        let all = status["proxies"].as_array().unwrap();
        let of_it = all.iter().filter(|proxy| proxy["state"] == state);
        of_it.map(|proxy| proxy["name"].as_str().unwrap().to_owned()).collect()
    };
    let of = |status: &Json, name: &str| {
        status["proxies"].as_array().unwrap().iter().find(|proxy| proxy["name"] == name).unwrap().clone()
    };
    shell(&ground.router, "ip link del mobile");
    daemon.wait_until("those that need it wait", |status| those(status, "waiting") == TIED);
    let status = daemon.status();
    for name in TIED {
        let why = of(&status, name)["why"].to_string();
        assert!(why.contains("mobile"), "{name}: {why}");
    }
    daemon.wait_until("the mobile host says so", |status| {
        of(status, "mobile-host")["notices"].to_string().contains("waited for: mobile")
    });
    veth::join([&ground.mobile, &ground.router], "mobile", Offload::SinglePackets).unwrap();
    ground.address_mobile();
    let returned = now();
    daemon.wait_until("all run again", |status| those(status, "waiting").is_empty());
    // They check every 3 s, and the machine is busy.
    assert!(returned.elapsed() < PATIENCE / 2, "{:?}", returned.elapsed());
    daemon.wait_until("the mobile host has its radio", |status| {
        of(status, "mobile-host")["notices"].to_string().contains("there again")
    });
    let before = daemon.metric("d-proxy", "segments_out");
    run_transfer([&ground.server, &ground.mobile], (MOBILE, 5005), 100_000);
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("d-proxy", "segments_out") > before);
    let said = daemon.log_text();
    for name in TIED {
        let of_it = format!("proxy=\"{name}\"");
        let lines =
            |words: &str| said.lines().filter(|line| line.contains(&of_it) && line.contains(words)).count();
        assert_eq!((lines("ended; it is started again"), lines("running again")), (1, 1), "{name}: {said}");
    }
    assert!(daemon.ended_by("TERM").success());
}

/// Snoop at an interface with a configured rate.
const SHAPED: &str = "[[proxy]]\nkind = \"snoop\"\ninterface = \"mobile\"\nrate_mbps = 19.5\n";
/// Command that prints the interface's queueing discipline and its limit.
const QUEUE: &str = "tc qdisc show dev mobile; ip -o link show dev mobile | grep -o 'qlen [0-9]*'";

pub(crate) fn the_queue_of_a_shaped_interface_is_added_and_removed_with_the_daemon() {
    let ground = Ground::new();
    let before = shell(&ground.router, QUEUE);
    let mut daemon = ground.start(SHAPED);
    let during = shell(&ground.router, QUEUE);
    for part in ["qdisc tbf 686f: root", "rate 19500Kbit", "qdisc pfifo_fast", "parent 686f:1", "qlen 81"] {
        assert!(during.contains(part), "no {part} in\n{during}");
    }
    run_transfer([&ground.server, &ground.mobile], (MOBILE, 4000), 500_000);
    // Reloaded with another rate, the discipline and its original one stay the same.
    ground.write(&SHAPED.replace("19.5", "39"));
    daemon.signal("HUP");
    daemon.wait_until("it has read again", |status| status["reloads"] == 1);
    assert!(shell(&ground.router, QUEUE).contains("rate 39Mbit"), "{}", daemon.log_text());
    assert!(daemon.ended_by("TERM").success());
    assert_eq!(shell(&ground.router, QUEUE), before);
    let mut daemon = ground.start(SHAPED);
    daemon.process.kill().unwrap();
    daemon.process.wait().unwrap();
    until_or(|| panic!("its keeper leaves it"), || shell(&ground.router, QUEUE) == before);
}

pub(crate) fn a_queue_of_another_program_is_a_conflict_and_kept() {
    let ground = Ground::new();
    shell(&ground.router, "tc qdisc add dev mobile root pfifo limit 7");
    let before = shell(&ground.router, QUEUE);
    let refused = ground.proxy("run", &ground.write(SHAPED));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("pfifo at the interface mobile is there already"), "{said}");
    assert_eq!(shell(&ground.router, QUEUE), before);
}

pub(crate) fn a_daemon_started_by_root_runs_as_the_configured_user() {
    let ground = Ground::new();
    fs::set_permissions(ground.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let before = ground.listing();
    let text = format!("user = \"nobody\"\n{BOTH}");
    let mut daemon = ground.start(&text);
    let process = fs::read_to_string(format!("/proc/{}/status", daemon.process.id())).unwrap();
    let field =
        |name: &str| process.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert_eq!(field("Uid:"), "65534\t65534\t65534\t65534");
    assert_eq!(field("Gid:"), "65534\t65534\t65534\t65534");
    assert!(!field("Groups:").split(' ').any(|group| group == "0"), "{process}");
    // Programs that it starts have the same capabilities.
    for set in ["CapPrm:", "CapEff:", "CapAmb:", "CapBnd:"] {
        assert_eq!(field(set), format!("{:016x}", 1 << 10 | 1 << 12 | 1 << 13), "{set}");
    }
    let status = daemon.status();
    assert_eq!(status["sandbox"]["user"], 65534);
    assert!(!status["sandbox"]["unrestricted"].to_string().contains("root"), "{status}");
    assert_eq!(fs::metadata(ground.state()).unwrap().uid(), 65534);
    run_transfer([&ground.server, &ground.mobile], (MOBILE, 5001), 100_000);
    run_transfer([&ground.server, &ground.mobile], (MOBILE, 5002), 100_000);
    // It can make rules and begin services.
    ground.write(&text.replacen("5001", "5003", 1));
    daemon.signal("HUP");
    daemon.wait_until("it has read again", |status| status["reloads"] == 1);
    assert!(ground.listing().contains("5003"), "{}", daemon.log_text());
    assert!(!daemon.log_text().contains("will be refused"), "{}", daemon.log_text());
    assert!(daemon.ended_by("TERM").success());
    ground.is_as_before(&before, "told to end");
    // If it is killed, its rules are removed. At its start it names files that it will not be able to read.
    let file = ground.write(&text);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let mut daemon = ground.start_file(&file);
    until_or(|| panic!("{}", daemon.log_text()), || daemon.log_text().contains("a reload will be refused"));
    daemon.ended_by("KILL");
    ground.is_as_before(&before, "killed");
    // A daemon that stays root has no right to the folder any more.
    let refused = ground.proxy("run", &ground.write(BOTH));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("belongs to user 65534"), "{said}");
    ground.is_as_before(&before, "refused");
}

/// Policies of the threads of a process by their names: proc_pid_stat(5), the 41st field.
fn policies(process: u32) -> BTreeMap<String, String> {
    let of = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap();
        let (name, rest) = stat.split_once('(').unwrap().1.rsplit_once(')').unwrap();
        (name.to_owned(), rest.split_whitespace().nth(38).unwrap().to_owned())
    };
    fs::read_dir(format!("/proc/{process}/task")).unwrap().map(|task| of(task.unwrap())).collect()
}

pub(crate) fn packets_are_processed_in_real_time_if_permitted_and_privileges_are_dropped() {
    let ground = Ground::new();
    // sched(7): SCHED_OTHER is 0, SCHED_FIFO 1.
    let real_time = ("1", "in real time");
    let (ordinary, without) =
        (("0", "as others run"), ["prlimit", "--rtprio=0", "setpriv", "--bounding-set=-sys_nice"]);
    let here = match in_a_thread(request_real_time).join().unwrap() {
        Priority::RealTime => real_time,
        Priority::Ordinary => ordinary,
    };
    for (words, (policy, says)) in [(&[][..], here), (&without[..], ordinary)] {
        let file = ground.write(BOTH);
        let mut daemon = ground.begin_by(words, &file);
        daemon.wait_until("it runs", |status| status["proxies"][0]["state"] == "running");
        until_or(|| panic!("{}", daemon.log_text()), || daemon.log_text().contains(says));
        let is_so = |process| {
            // A thread names itself when it has begun.
            until_or(|| panic!("{:?}", policies(process)), || policies(process).contains_key("proxy snoop"));
            let policies = policies(process);
            assert_eq!(policies["proxy snoop"], policy, "{policies:?}");
            let others = |name: &str| !["proxy snoop", "starter"].contains(&name);
            assert!(policies.iter().all(|(name, is)| !others(name) || is == "0"), "{policies:?}");
        };
        is_so(daemon.process.id());
        // A service that begins later has the same policy as the first.
        ground.write(&BOTH.replacen("mobile", "fixed", 1));
        daemon.signal("HUP");
        daemon.wait_until("it has read again", |status| status["reloads"] == 1);
        is_so(daemon.process.id());
        assert!(!daemon.log_text().contains("running again"), "{}", daemon.log_text());
        assert_eq!(daemon.log_text().matches("packets are served").count(), 1, "{}", daemon.log_text());
        // capabilities(7): CAP_NET_BIND_SERVICE is bit 10, CAP_NET_ADMIN 12, CAP_NET_RAW 13.
        let status = fs::read_to_string(format!("/proc/{}/status", daemon.process.id())).unwrap();
        for set in ["CapPrm", "CapEff"] {
            assert!(status.contains(&format!("{set}:\t{:016x}\n", 1 << 10 | 1 << 12 | 1 << 13)), "{status}");
        }
        assert!(daemon.ended_by("TERM").success());
        fs::remove_file(ground.folder.path().join("proxy.log")).unwrap();
    }
}
