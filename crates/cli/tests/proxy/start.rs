//! Start of a daemon: an error is reported in one sentence, and nothing is left half set up.

use crate::proxy::world::{Ground, hopline, proxy, secret, shell, until_or};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Configuration with Snoop and split connections on the router.
pub(crate) const BOTH: &str = "\
[[proxy]]
kind = \"snoop\"
interface = \"mobile\"
ports = [5001]
[[proxy]]
kind = \"split\"
interface = \"mobile\"
ports = [5002]
";

fn stderr_of(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Checks that it prints one error, which contains these words, and ends with exit code 2.
fn assert_rejected(output: &Output, words: &[&str]) {
    let said = stderr_of(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.matches('×').count(), 1, "one sentence: {said}");
    for word in words {
        assert!(said.contains(word), "no \"{word}\": {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

/// Checks the error, and that the machine is unchanged.
fn assert_rejected_without_setup(ground: &Ground, run: &Output, words: &[&str], before: &str) {
    assert_rejected(run, words);
    ground.is_as_before(before, &words.join(" "));
}

pub(crate) fn a_router_without_forwarding_is_warned_about() {
    let ground = Ground::new();
    let file = ground.write("[[proxy]]\nkind = \"snoop\"\ninterface = \"mobile\"\n");
    assert_eq!(stderr_of(&ground.proxy("check", &file)), "");
    shell(&ground.router, "echo 0 > /proc/sys/net/ipv4/ip_forward");
    let output = ground.proxy("check", &file);
    assert!(output.status.success());
    assert!(stderr_of(&output).contains("sysctl -w net.ipv4.ip_forward=1"), "{}", stderr_of(&output));
    let daemon = ground.start_file(&file);
    assert!(daemon.log_text().contains("mobile does not forward IPv4"), "{}", daemon.log_text());
    drop(daemon);
    // There is a warning for each IP version.
    shell(
        &ground.router,
        "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/net/ipv6/conf/all/forwarding",
    );
    let said = |subnets: &str| {
        let file = ground.write(&format!("[[proxy]]\nkind = \"snoop\"\ninterface = \"mobile\"\n{subnets}\n"));
        stderr_of(&ground.proxy("check", &file))
    };
    let of_ipv6 = "mobile does not forward IPv6";
    let both = said("");
    assert!(both.contains(of_ipv6) && both.contains("sysctl -w net.ipv6.conf.all.forwarding=1"), "{both}");
    assert!(!both.contains("IPv4"), "{both}");
    assert_eq!(said("subnets = [\"10.9.0.0/24\"]"), "");
    assert!(said("subnets = [\"fd09::/64\"]").contains(of_ipv6));
    // Without an IPv6 address at the interface there is nothing to forward.
    shell(&ground.router, "ip -6 addr flush dev mobile");
    assert_eq!(said(""), "");
}

pub(crate) fn without_ip6tables_ipv4_works_and_ipv6_is_warned_about() {
    let ground = Ground::new();
    let folder = programs(&ground, "v4", &["iptables", "iptables-restore", "ip", "nft"]);
    let file = ground.write("[[proxy]]\nkind = \"snoop\"\ninterface = \"mobile\"\n");
    let in_folder = |what: &str| {
        let mut command = proxy(what, &file);
        command.env("PATH", &folder);
        ground.ends(command)
    };
    let check = in_folder("check");
    assert!(check.status.success());
    for words in ["the proxy \"snoop\" unseen", "no program `ip6tables`", "apt-get install iptables"] {
        assert!(stderr_of(&check).contains(words), "{}", stderr_of(&check));
    }
    let before = ground.listing();
    assert!(in_folder("setup").status.success());
    let rules = shell(&ground.router, "iptables -w -t security -S; ip6tables -w -t security -S");
    assert_eq!(rules.matches("-j NFQUEUE").count(), 2, "{rules}");
    assert!(in_folder("undo").status.success());
    ground.is_as_before(&before, "undone");
}

/// Creates a folder with only these programs.
fn programs(ground: &Ground, name: &str, programs: &[&str]) -> PathBuf {
    let folder = ground.folder.path().join(name);
    fs::create_dir(&folder).unwrap();
    let find = |name: &str| {
        let path = std::env::var_os("PATH").unwrap();
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.exists()).unwrap()
    };
    for name in programs {
        std::os::unix::fs::symlink(find(name), folder.join(name)).unwrap();
    }
    folder
}

pub(crate) fn errors_in_a_file_have_a_position_and_advice() {
    let ground = Ground::new();
    for (text, words) in [
        ("", ["no proxy", "[[proxy]]", ""]),
        ("[[proxy]]\nkind = \"snoop\"\n", ["without `interface`", "2", "wlan0"]),
        ("[[proxy]]\nkind = \"snop\"\n", ["snop", "snoop", "2"]),
        (
            "[[proxy]]\nkind = \"snoop\"\ninterface = \"wlan0; reboot\"\n",
            ["no name of an interface", "ip link", "4"],
        ),
        ("[[proxy]]\nkind = \"snoop\"\ninterface = \"w\"\nports = [70000]\n", ["70000", "65535", "5"]),
        (
            "[[proxy]]\nkind = \"snoop\"\ninterface = \"w\"\nmobile_congestion = \"bbr\"\n",
            ["mobile_congestion", "belongs to", "split"],
        ),
        (
            "metrics = \"nowhere\"\n[[proxy]]\nkind = \"snoop\"\ninterface = \"w\"\n",
            ["nowhere", "127.0.0.1:9464", "2"],
        ),
        (
            "name = \"../../etc/x\"\n[[proxy]]\nkind = \"snoop\"\ninterface = \"w\"\n",
            ["no name of a daemon", "16 letters", "2"],
        ),
        (
            "[[proxy]]\nkind = \"gateway\"\nexit = \"192.0.2.7:7172\"\nidentity = \"a\"\nsocks = \"0.0.0.0:1080\"\n",
            ["connections made to anywhere", "socks_login_file", "6"],
        ),
        ("[[proxy\n", ["proxy.toml:2", "expected `]]`", "×"]),
    ] {
        let file = ground.write(text);
        for what in ["check", "run", "setup", "undo"] {
            assert_rejected(&ground.proxy(what, &file), &words);
        }
    }
    assert_rejected(&ground.proxy("check", Path::new("/nowhere/x.toml")), &["/nowhere/x.toml"]);
    assert!(!ground.state().exists(), "a file that is wrong makes no folder");
}

pub(crate) fn the_commands_of_a_dry_run_give_the_same_rules() {
    let ground = Ground::new();
    let file = ground.write(BOTH);
    let before = ground.listing();
    let dry = ground.proxy("setup --dry-run", &file);
    assert_eq!((dry.status.code(), ground.listing()), (Some(0), before.clone()), "a dry run changes nothing");
    assert_eq!(ground.proxy("setup", &file).status.code(), Some(0));
    let set_up = ground.listing();
    assert_ne!(set_up, before);
    assert_eq!(ground.proxy("undo", &file).status.code(), Some(0));
    ground.is_as_before(&before, "undone");
    shell(&ground.router, &String::from_utf8(dry.stdout).unwrap());
    assert_eq!(ground.listing(), set_up);
}

pub(crate) fn setup_and_undo_are_idempotent() {
    let ground = Ground::new();
    let file = ground.write(BOTH);
    let before = ground.listing();
    assert_eq!(ground.proxy("setup", &file).status.code(), Some(0));
    let set_up = ground.listing();
    let again = ground.proxy("setup", &file);
    assert_eq!((again.status.code(), ground.listing()), (Some(0), set_up), "{}", stderr_of(&again));
    for words in ["removed", "nothing was there"] {
        let undone = ground.proxy("undo", &file);
        assert_eq!(undone.status.code(), Some(0), "{}", stderr_of(&undone));
        assert!(stderr_of(&undone).contains(words), "{}", stderr_of(&undone));
    }
    ground.is_as_before(&before, "undone");
}

pub(crate) fn a_second_daemon_of_a_name_is_rejected() {
    let ground = Ground::new();
    let before = ground.listing();
    let file = ground.write(BOTH);
    let mut first = ground.start_file(&file);
    let running = ground.listing();
    let process = first.process.id().to_string();
    for what in ["run", "setup", "undo"] {
        assert_rejected(&ground.proxy(what, &file), &["running already", &process]);
    }
    assert_eq!(ground.listing(), running);
    assert_eq!(first.status()["process"].to_string(), process);
    assert!(first.ended_by("TERM").success());
    ground.is_as_before(&before, "the first one");
}

pub(crate) fn a_daemon_of_another_name_is_told_the_shared_resources() {
    let ground = Ground::new();
    let before = ground.listing();
    let mut first = ground.start(BOTH);
    let running = ground.listing();
    let other = |text: &str| {
        let file = ground.folder.path().join("other.toml");
        let state = ground.folder.path().join("other");
        fs::write(&file, format!("name = \"other\"\nstate_dir = \"{}\"\n{text}", state.display())).unwrap();
        ground.proxy("run", &file)
    };
    assert_rejected(&other(BOTH), &["\"snoop\"", "26735"]);
    let queue = BOTH.replacen("ports", "queue = 9\nports", 1);
    assert_rejected(&other(&queue), &["\"split\"", "7071"]);
    let queue = queue.replace("ports = [5002]", "queue = 10\nports = [5002]");
    let port = queue.replace("ports = [5002]", "listen_port = 7077\nports = [5002]");
    assert_rejected(&other(&port), &["there already", "mark and route_table"]);
    assert_eq!(ground.listing(), running, "the first one's are untouched");
    assert!(first.ended_by("TERM").success());
    ground.is_as_before(&before, "the first one");
}

pub(crate) fn a_resource_in_use_is_named_and_nothing_is_set_up() {
    let ground = Ground::new();
    let before = ground.listing();
    let run = |text: &str| ground.proxy("run", &ground.write(text));
    let bind =
        |at: &'static str| ground.router.run(move || std::net::TcpListener::bind(at).unwrap()).unwrap();
    let taken = bind("127.0.0.1:7071");
    assert_rejected_without_setup(&ground, &run(BOTH), &["\"split\"", "127.0.0.1:7071"], &before);
    drop(taken);
    let _taken = bind("127.0.0.1:9464");
    let metrics = format!("metrics = \"127.0.0.1:9464\"\n{BOTH}");
    assert_rejected_without_setup(&ground, &run(&metrics), &["127.0.0.1:9464", "in use"], &before);
    let law = BOTH.replacen("ports = [5002]", "mobile_congestion = \"nosuchlaw\"", 1);
    assert_rejected_without_setup(&ground, &run(&law), &["nosuchlaw", "this kernel has"], &before);
}

pub(crate) fn missing_interfaces_are_named_by_check_and_waited_for_by_run() {
    let ground = Ground::new();
    let before = ground.listing();
    let key = ground.folder.path().join("link.key");
    secret(&key, &"07".repeat(32));
    let file = ground.write(&format!(
        "[[proxy]]\nkind = \"snoop\"\ninterface = \"wlan7\"\nrate_mbps = 20\n\
         [[proxy]]\nkind = \"opaque\"\nlocal = \"192.0.2.1\"\npeer = \"192.0.2.2\"\nkey_file = \"{}\"\n",
        key.display()
    ));
    let checked = ground.proxy("check", &file);
    assert!(checked.status.success(), "{}", stderr_of(&checked));
    let named = [
        ("proxy.toml:4:13", "`interface`: there is no interface `wlan7` here now, there are: lo, "),
        ("proxy.toml:8:9", "`local`: no interface here has the address 192.0.2.1 now"),
    ];
    for (place, words) in named {
        assert!(
            stderr_of(&checked).contains(place) && stderr_of(&checked).contains(words),
            "{}",
            stderr_of(&checked)
        );
    }
    let mut daemon = ground.begin(&file);
    daemon.wait_until("both wait", |status| {
        let waits = |at: usize, name: &str| {
            let proxy = &status["proxies"][at];
            proxy["state"] == "waiting" && proxy["why"].as_str().is_some_and(|why| why.contains(name))
        };
        waits(0, "wlan7") && waits(1, "192.0.2.1")
    });
    shell(
        &ground.router,
        "ip link add wlan7 type veth peer name other; ip addr add 192.0.2.1/24 dev wlan7; ip link set wlan7 up",
    );
    daemon.wait_until("both run", |status| {
        (0..2).all(|at| status["proxies"][at]["state"] == "running" && status["proxies"][at]["restarts"] == 0)
    });
    until_or(|| panic!("no queue"), || shell(&ground.router, "tc qdisc show dev wlan7").contains("tbf"));
    for (_, words) in named {
        assert_eq!(daemon.log_text().matches(words).count(), 1, "once: {}", daemon.log_text());
    }
    assert!(daemon.ended_by("TERM").success());
    assert!(ground.undo_tunnels(&file).status.success());
    shell(&ground.router, "ip link del wlan7");
    ground.is_as_before(&before, "ended");
}

pub(crate) fn missing_addresses_are_waited_for() {
    let ground = Ground::new();
    let key = ground.folder.path().join("link.key");
    secret(&key, &"07".repeat(32));
    let login = ground.folder.path().join("socks.login");
    secret(&login, "user:password");
    let login = format!("socks_login_file = \"{}\"\n", login.display());
    let network = ground.folder.path().join("network.key");
    secret(&network, &"07".repeat(16));
    let [key, network] = [key, network].map(|key| format!("key_file = \"{}\"\n", key.display()));
    let file = ground.write(&format!(
        "[[proxy]]\nkind = \"gateway\"\nexit = \"10.8.0.1:7172\"\nidentity = \"router\"\nsocks = \"192.0.2.9:1080\"\n{login}{key}\
         [[proxy]]\nkind = \"home-agent\"\naddress = \"192.0.2.11\"\nnetwork = \"10.7.0.0/24\"\nmobiles = [\"10.7.0.7\"]\n\
         interfaces = [\"fixed\"]\n{network}"
    ));
    let mut daemon = ground.begin(&file);
    daemon.wait_until("both wait", |status| {
        let waits = |at: usize, address: &str| {
            let proxy = &status["proxies"][at];
            proxy["state"] == "waiting" && proxy["why"].as_str().is_some_and(|why| why.contains(address))
        };
        waits(0, "192.0.2.9") && waits(1, "192.0.2.11")
    });
    shell(&ground.router, "ip addr add 192.0.2.9/24 dev fixed; ip addr add 192.0.2.11/24 dev fixed");
    daemon.wait_until("both run", |status| {
        (0..2).all(|at| status["proxies"][at]["state"] == "running" && status["proxies"][at]["restarts"] == 0)
    });
    assert!(daemon.ended_by("TERM").success());
}

pub(crate) fn a_strict_reverse_path_filter_that_drops_tunnel_packets_is_warned_about() {
    let ground = Ground::new();
    let key = ground.folder.path().join("link.key");
    secret(&key, &"07".repeat(32));
    let file = ground.write(&format!(
        "[[proxy]]\nkind = \"opaque\"\nlocal = \"10.9.0.254\"\npeer = \"10.9.0.1\"\nroutes = [\"10.9.0.0/24\"]\nkey_file = \"{}\"\n",
        key.display()
    ));
    let told = |filter: u8| {
        shell(&ground.router, &format!("echo {filter} > /proc/sys/net/ipv4/conf/mobile/rp_filter"));
        let checked = ground.proxy("check", &file);
        assert!(checked.status.success(), "{}", stderr_of(&checked));
        stderr_of(&checked).contains("its `peer` 10.9.0.1, and mobile drops packets")
            && stderr_of(&checked).contains("sysctl -w net.ipv4.conf.mobile.rp_filter=2")
    };
    assert_eq!([0, 1, 2].map(told), [false, true, false]);
}

pub(crate) fn a_missing_privilege_is_a_single_error() {
    let ground = Ground::new();
    let before = ground.listing();
    let file = ground.write(BOTH);
    let with = |options: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(options).arg(env!("CARGO_BIN_EXE_hopline")).args(["proxy", "run"]).arg(&file);
        ground.ends(command)
    };
    let no_capabilities = with(&["--bounding-set=-all", "--inh-caps=-all"]);
    assert_rejected_without_setup(&ground, &no_capabilities, &["CAP_NET_ADMIN"], &before);
    // An unprivileged user may not write there.
    let nobody = with(&["--reuid=65534", "--regid=65534", "--clear-groups"]);
    assert_rejected_without_setup(&ground, &nobody, &["state", "ermission denied"], &before);
}

pub(crate) fn a_missing_program_is_a_single_error() {
    let ground = Ground::new();
    let before = ground.listing();
    let empty = programs(&ground, "empty", &[]);
    let file = ground.write(BOTH);
    for what in ["run", "setup"] {
        let mut command = proxy(what, &file);
        command.env("PATH", &empty);
        let refused = ground.ends(command);
        assert_rejected_without_setup(
            &ground,
            &refused,
            &["no program `iptables`", "apt-get install iptables"],
            &before,
        );
    }
    // With all programs but the last: what was made before the failure is removed again.
    let all_but_one = ["iptables", "iptables-restore", "ip6tables", "ip6tables-restore", "ip"];
    let mut command = proxy("run", &file);
    command.env("PATH", programs(&ground, "some", &all_but_one));
    let refused = ground.ends(command);
    assert_rejected_without_setup(
        &ground,
        &refused,
        &["no program `nft`", "apt-get install nftables"],
        &before,
    );
}

pub(crate) fn a_chain_of_another_program_is_a_conflict_and_kept() {
    let ground = Ground::new();
    let file = ground.write(BOTH);
    shell(
        &ground.router,
        "iptables -w -t security -N HOPLINE-hopline; iptables -w -t security -A HOPLINE-hopline -j ACCEPT",
    );
    let before = ground.listing();
    for what in ["run", "setup"] {
        let refused = ground.proxy(what, &file);
        assert_rejected_without_setup(&ground, &refused, &["HOPLINE-hopline", "another name"], &before);
    }
    let undone = ground.proxy("undo", &file);
    assert!(stderr_of(&undone).contains("nothing was there"), "{}", stderr_of(&undone));
    ground.is_as_before(&before, "undone");
    // It is not taken later either, by a daemon that needs the chain after a reload.
    let split = &BOTH[BOTH.rfind("[[proxy]]").unwrap()..];
    let mut daemon = ground.start(split);
    ground.write(BOTH);
    daemon.signal("HUP");
    daemon.wait_until("it has read again", |status| status["reloads"] == 1);
    until_or(|| panic!("{}", daemon.log_text()), || daemon.log_text().contains("there already"));
    assert!(daemon.ended_by("TERM").success());
    ground.is_as_before(&before, "read again");
}

pub(crate) fn status_without_a_daemon_is_an_error() {
    let ground = Ground::new();
    let file = ground.write(BOTH);
    let mut command = hopline();
    command.args(["proxy", "status"]).arg(&file);
    let output = ground.ends(command);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr_of(&output).contains("no daemon called \"hopline\""), "{}", stderr_of(&output));
}
