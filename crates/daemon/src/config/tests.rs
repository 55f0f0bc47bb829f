use super::*;
use crate::rules::{Rules, Tracking};
use hopline_middlebox::diversion::Diversion;
use hopline_middlebox::gateway::{Fallback, Transport};
use hopline_middlebox::split::ConnectOrder;
use hopline_proxy::QueuePosition;
use hopline_proxy::tunnel::RecoveryScheme;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

mod bounds;

fn read(text: &str) -> Result<Config, String> {
    let source = Source { name: "p.toml".into(), text: text.into() };
    Config::parse(&Arc::new(source)).map_err(|problems| problems.to_string())
}

/// Writes a file with a secret that only its owner may read.
fn secret(path: &Path, text: impl AsRef<[u8]>) {
    fs::write(path, text).unwrap();
    chmod(path, 0o600);
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

const SNOOP: &str = "[[proxy]]\nkind = \"snoop\"\ninterface = \"wlan0\"\n";

#[test]
fn the_shortest_file_has_defaults_for_the_rest() {
    let config = read(SNOOP).unwrap();
    assert_eq!(config.name, "hopline");
    assert_eq!(config.state_dir, Path::new("/run/hopline"));
    assert_eq!((config.metrics, config.log), (None, LogFormat::Text));
    let [Proxy { name, task: Task::Snoop(path, machine) }] = config.proxies.as_slice() else {
        panic!("{config:?}")
    };
    assert_eq!(name, "snoop");
    assert_eq!((path.queue, path.interface.as_str()), (26_735, "wlan0"));
    assert!(path.subnets.is_empty() && path.ports.is_empty());
    let hop_window = Some(hopline_proxy::hop_window::Config::DEFAULT);
    assert_eq!(
        *machine,
        hopline_proxy::snoop::Config { hop_window, ..hopline_proxy::snoop::Config::modern() }
    );
    for said in ["rate_mbps = 20", "hop_window = \"off\""] {
        let config = read(&format!("{SNOOP}{said}\n")).unwrap();
        let Task::Snoop(_, machine) = &config.proxies[0].task else { panic!("{config:?}") };
        assert_eq!(*machine, hopline_proxy::snoop::Config::modern(), "{said}");
    }
}

#[test]
fn keys_of_middleboxes_are_those_of_scenarios() {
    let config = read(&format!("{SNOOP}preset = \"published\"\nlocal_limit = 3\n")).unwrap();
    let Task::Snoop(_, machine) = &config.proxies[0].task else { panic!("{config:?}") };
    assert_eq!(
        *machine,
        hopline_proxy::snoop::Config {
            max_local_retransmissions: 3,
            ..hopline_proxy::snoop::Config::published()
        }
    );
}

#[test]
fn each_proxy_has_its_own_queue() {
    let two = format!("{SNOOP}{}name = \"other\"\n", SNOOP.replace("wlan0", "wlan1"));
    let config = read(&two).unwrap();
    let queues: Vec<_> = config.proxies.iter().map(|proxy| proxy.task.queues().collect::<Vec<_>>()).collect();
    assert_eq!(queues, [[26_735], [26_736]]);
    let same = read(&format!("{two}queue = 26735\n")).unwrap_err();
    assert!(same.starts_with("p.toml:8:9: two proxies have queue 26735"), "{same}");
}

#[test]
fn servers_are_connected_first_by_default() {
    const SPLIT: &str = "[[proxy]]\nkind = \"split\"\ninterface = \"wlan0\"\n";
    let task = |rest: &str| match read(&format!("{SPLIT}{rest}")).unwrap().proxies.remove(0).task {
        Task::Split(task) => task,
        other => panic!("{other:?}"),
    };
    let diversion = Diversion { queue: 26_735, mark: 26_735, port: 7070 };
    let [first, after] = [ConnectOrder::ServerFirst(diversion), ConnectOrder::ClientFirst(Some(diversion))];
    for (rest, expected) in [("", first), ("onward = \"first\"\n", first), ("onward = \"after\"\n", after)] {
        assert_eq!(task(rest).config.connect_order, expected, "{rest}");
    }
    let other = ConnectOrder::ServerFirst(Diversion { queue: 9, ..diversion });
    assert_eq!(task("queue = 9\n").config.connect_order, other);
    let same = read(&format!("{SNOOP}{SPLIT}queue = 26735\n")).unwrap_err();
    assert!(same.contains("two proxies have queue 26735"), "{same}");
}

#[test]
fn the_ends_of_a_link_are_distinct_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("link.key");
    secret(&key, "07".repeat(32));
    for kind in ["d-proxy", "opaque", "arq"] {
        let interface = if kind == "d-proxy" { "interface = \"wlan0\"\n" } else { "" };
        let ends = |local: &str, peer: &str| {
            let head = format!("[[proxy]]\nkind = \"{kind}\"\n{interface}key_file = \"{}\"\n", key.display());
            read(&format!("{head}local = \"{local}\"\npeer = \"{peer}\"\n"))
        };
        assert!(ends("192.0.2.1", "192.0.2.2").is_ok());
        let same = ends("192.0.2.1", "192.0.2.1").unwrap_err();
        assert!(same.contains("`peer` = \"192.0.2.1\" is `local` too (`local` is this end's"), "{same}");
        assert!(ends("fd00::1", "fd00::2").is_ok());
        // D-Proxy has the key `interface`, so a link-local address is valid.
        let link_local = ends("fe80::1", "fe80::2");
        assert_eq!(link_local.is_ok(), kind == "d-proxy", "{link_local:?}");
        let mixed = ends("192.0.2.1", "fd00::2").unwrap_err();
        assert!(mixed.contains("`peer` = \"fd00::2\" is of another version of IP than `local`"), "{mixed}");
        for (local, peer) in [
            ("::", "fd00::2"),
            ("fd00::1", "ff02::1"),
            ("0.0.0.0", "192.0.2.1"),
            ("192.0.2.1", "224.0.0.1"),
            ("255.255.255.255", "192.0.2.1"),
        ] {
            let none = ends(local, peer).unwrap_err();
            assert!(none.contains("is no address of a host"), "{none}");
        }
    }
}

#[test]
fn retransmissions_go_first_and_tail_probes_follow_the_rate_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("link.key");
    secret(&key, "07".repeat(32));
    let pair = |kind: &str, rest: &str| {
        let ends = "local = \"192.0.2.1\"\npeer = \"192.0.2.2\"\n";
        let file = format!("[[proxy]]\nkind = \"{kind}\"\n{ends}key_file = \"{}\"\n{rest}", key.display());
        read(&file).unwrap().proxies.remove(0).task
    };
    let d_proxy = |rest: &str| match pair("d-proxy", &format!("interface = \"wlan0\"\n{rest}")) {
        Task::DProxy(task) => (task.config.machine.queue_position, task.config.machine.recovery.min_average),
        other => panic!("{other:?}"),
    };
    let ms = hopline_core::Duration::from_millis;
    assert_eq!(d_proxy(""), (QueuePosition::Front, ms(2)));
    assert_eq!(d_proxy("turn = \"last\"\nmin_timer_ms = 5\n"), (QueuePosition::Back, ms(5)));
    let opaque = |rest: &str| match pair("opaque", rest) {
        Task::Tunnel(task) => match task.config.repair {
            RecoveryScheme::Nack(config) => (config.queue_position, config.tail_probe_delay),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(opaque(""), (QueuePosition::Front, Some(ms(4))));
    assert_eq!(opaque("rate_mbps = 6\n"), (QueuePosition::Front, Some(ms(16))));
    assert_eq!(opaque("rate_mbps = 6\ntail_probe_ms = 3\n").1, Some(ms(3)));
}

#[test]
fn a_mobile_host_has_its_own_key_and_registers_at_named_stations() {
    let folder = tempfile::tempdir().unwrap();
    let (network, host) = (folder.path().join("cells.key"), folder.path().join("host.key"));
    secret(&network, "07".repeat(16));
    let line = crate::host_key(network.to_str().unwrap(), "10.9.0.7".parse().unwrap()).unwrap();
    assert_ne!(line, crate::host_key(network.to_str().unwrap(), "10.9.0.8".parse().unwrap()).unwrap());
    secret(&host, line);
    let mobile = |key: &std::path::Path| {
        let head = "[[proxy]]\nkind = \"mobile-host\"\naddress = \"10.9.0.7\"\ninterfaces = [\"wlan0\"]\n";
        read(&format!("{head}key_file = \"{}\"\n", key.display()))
    };
    assert!(mobile(&host).is_ok());
    let said = mobile(&network).unwrap_err();
    assert!(said.contains("hopline proxy host-key NETWORK.KEY 10.9.0.7"), "{said}");
    let home = |rest: &str| {
        let head = "[[proxy]]\nkind = \"home-agent\"\naddress = \"192.0.2.1\"\nnetwork = \"10.9.0.0/24\"\n";
        let key = network.display();
        read(&format!(
            "{head}mobiles = [\"10.9.0.7\"]\ninterfaces = [\"eth0\"]\nkey_file = \"{key}\"\n{rest}"
        ))
    };
    assert!(home("").is_ok());
    let said = home("scheme = \"registration\"\n").unwrap_err();
    assert!(said.contains("without `stations` (add stations = [\"192.0.2.11\"])"), "{said}");
    let config = home("scheme = \"registration\"\nstations = [\"192.0.2.11\"]\n").unwrap();
    let Task::HomeAgent(config) = &config.proxies[0].task else { panic!("{config:?}") };
    assert_eq!(config.stations, ["192.0.2.11".parse::<std::net::Ipv4Addr>().unwrap()]);
}

/// Returns the file of a station: a base station with this address, and split proxies.
fn station(folder: &Path, splits: &str) -> Result<Config, String> {
    let key = folder.join("cells.key");
    secret(&key, "07".repeat(16));
    read(&format!(
        "[[proxy]]\nkind = \"base-station\"\naddress = \"192.0.2.11\"\nhome_agent = \"192.0.2.1\"\nnetwork = \"10.9.0.0/24\"\n\
         wired = \"eth0\"\ninterface = \"wlan0\"\nkey_file = \"{}\"\n{splits}",
        key.display()
    ))
}

const MOVES: &str = "[[proxy]]\nkind = \"split\"\ninterface = \"wlan0\"\nmoves = { stations = [\"192.0.2.12\", \"192.0.2.13\"] }\n";

#[test]
fn connection_moves_follow_the_base_station_with_the_same_radio() {
    use hopline_middlebox::handoff::VisitorList;
    use hopline_middlebox::split::MobileHosts;
    let folder = tempfile::tempdir().unwrap();
    let config = station(folder.path(), MOVES).unwrap();
    let Task::Split(split) = &config.proxies[1].task else { panic!("{config:?}") };
    let legs = &split.config.legs;
    assert_eq!(legs.mobile_hosts, MobileHosts::InNetworks(vec!["10.9.0.0/24".parse().unwrap()]));
    assert_eq!((legs.mobile.mark(), legs.fixed.mark()), (hopline_middlebox::nfqueue::MARK, 0));
    let moves =
        split.connection_moves.as_ref().unwrap().move_config("wlan0", VisitorList::default()).unwrap();
    assert_eq!(moves.listen, "192.0.2.11:7071".parse().unwrap());
    assert_eq!(moves.stations, ["192.0.2.12:7071", "192.0.2.13:7071"].map(|at| at.parse().unwrap()));
    assert_eq!(moves.base_station.unwrap().mark, hopline_middlebox::nfqueue::MARK);
    let rules = Rules::of(&config, Tracking::Absent).to_string();
    assert!(rules.contains("iifname \"wlan0\" meta nfproto ipv4 ip saddr { 10.9.0.0/24 } drop"), "{rules}");
    assert!(crate::router::tracked_moves_warning(&config, Tracking::InUse).unwrap().contains("\"split\""));
    assert_eq!(crate::router::tracked_moves_warning(&config, Tracking::Absent), None);
    // The order of the proxies in the file has no effect, and without `moves` nothing changes.
    let still = station(folder.path(), "[[proxy]]\nkind = \"split\"\ninterface = \"wlan0\"\n").unwrap();
    let Task::Split(split) = &still.proxies[1].task else { panic!("{still:?}") };
    assert_eq!(split.config.legs.mobile_hosts, MobileHosts::ThroughInterface("wlan0".into()));
    assert!(!Rules::of(&still, Tracking::Absent).to_string().contains(" drop"));
}

#[test]
fn incomplete_moves_are_rejected_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let moves = |text: &str| {
        station(
            folder.path(),
            &format!("[[proxy]]\nkind = \"split\"\ninterface = \"wlan0\"\nmoves = {text}\n"),
        )
    };
    for (text, says) in [
        ("{}", "p.toml:12:9: `proxy.1.moves` has no `stations` (add `stations = …`"),
        ("{ stations = [] }", "`moves` without other stations (name their addresses:"),
        ("{ stations = [\"x\"] }", "\"x\" is no IPv4 address (for example: \"192.0.2.12\")"),
        ("{ stations = [\"192.0.2.11\"] }", "192.0.2.11 is this station: its base-station has that address"),
        ("{ stations = [\"192.0.2.12\", \"192.0.2.12\"] }", "the station 192.0.2.12 twice"),
        (
            "{ stations = [\"192.0.2.12\"], port = 0 }",
            "`proxy.1.moves.port` = 0 is out of range (it takes a whole number from 1 to 65535)",
        ),
        ("{ station = [\"192.0.2.12\"] }", "did you mean `stations`?"),
    ] {
        let said = moves(text).unwrap_err();
        assert!(said.contains(says), "{text}\n{said}\n{says}");
    }
    let said = read(MOVES).unwrap_err();
    assert!(
        said.starts_with("p.toml:4:9: connections of the proxy \"split\" cannot move: no base-station"),
        "{said}"
    );
    assert!(said.contains("add a proxy of kind \"base-station\" to this file"), "{said}");
    let said = station(folder.path(), &MOVES.replace("wlan0", "wlan1")).unwrap_err();
    assert!(said.contains("\"base-station\" has wlan0"), "{said}");
    let second = MOVES.replace("kind", "ports = [80]\nname = \"second\"\nkind");
    let said = station(folder.path(), &format!("{second}{MOVES}")).unwrap_err();
    assert!(said.contains("two proxies move connections of hosts beyond wlan0"), "{said}");
}

#[test]
fn a_buffering_host_sees_its_own_packets_and_requests_nothing() {
    let config = read(
        "[[proxy]]\nkind = \"nack-host\"\ninterface = \"wlan0\"\nhigh_water_packets = 7\n\
         [[proxy]]\nkind = \"nack\"\ninterface = \"wlan0\"\n",
    )
    .unwrap();
    let [host, station] = [0, 1].map(|at| config.proxies[at].task.clone());
    let Task::NackHost(path, keeps) = &host else { panic!("{host:?}") };
    assert_eq!((keeps.high_water.get(), path.hooks), (7, crate::rules::Hooks::Local));
    let Task::Nack(path, asks) = &station else { panic!("{station:?}") };
    assert_eq!(
        (asks.policy, path.hooks),
        (hopline_proxy::nack::NackPolicy::Announced, crate::rules::Hooks::Forward)
    );
    for key in ["ports = [80]", "subnets = [\"10.1.0.0/16\"]", "rate_mbps = 20"] {
        let said = read(&format!("[[proxy]]\nkind = \"nack-host\"\ninterface = \"wlan0\"\n{key}\n"));
        assert!(said.unwrap_err().contains(key.split(' ').next().unwrap()), "{key}");
    }
}

#[test]
fn an_unknown_congestion_control_is_rejected_with_the_available_ones() {
    for (kind, key) in [("split", "mobile_congestion"), ("split", "fixed_congestion")] {
        let with = |name| {
            read(&format!("[[proxy]]\nkind = \"{kind}\"\ninterface = \"wlan0\"\n{key} = \"{name}\"\n"))
        };
        assert!(with("bbr").is_ok() && with("cubic").is_ok());
        let said = with("bbr9").unwrap_err();
        assert!(
            said.contains("\"bbr9\" is no congestion control of Linux (did you mean \"bbr\"? "),
            "{said}"
        );
        assert!(said.contains("this kernel has: "), "{said}");
    }
}

#[test]
fn a_list_for_a_scalar_key_suggests_the_key_that_takes_a_list() {
    let said = read(&format!("{SNOOP}port = [80]\n")).unwrap_err();
    assert!(said.contains("did you mean `ports`?"), "{said}");
}

#[test]
fn errors_have_a_position_and_advice() {
    for (text, says) in [
        ("", "p.toml:1:1: no proxy (add a table [[proxy]])"),
        (
            "[[proxy]]\nkind = \"snop\"\n",
            "p.toml:2:8: `proxy.0.kind` does not know \"snop\" (did you mean \"snoop\"?",
        ),
        (
            "[[proxy]]\nkind = \"snoop\"\n",
            "p.toml:2:8: a proxy of kind \"snoop\" without `interface` (add interface = \"wlan0\")",
        ),
        (
            "[[proxy]]\nkind = \"mtcp\"\ninterface = \"w\"\nturn = \"last\"\n",
            "p.toml:4:8: `turn` in a proxy of kind \"mtcp\" (it belongs to \"snoop\", \"d-proxy\", \"opaque\")",
        ),
        (
            "[[proxy]]\nkind = \"snoop\"\ninterface = \"wlan0 -j DROP\"\n",
            "p.toml:3:13: \"wlan0 -j DROP\" is no name of an interface",
        ),
        (
            "[[proxy]]\nkind = \"snoop\"\ninterface = \"w\"\nsubnets = [\"10.1.0/16\"]\n",
            "p.toml:4:11: \"10.1.0/16\" is no subnet (for example: \"10.1.0.0/16\")",
        ),
        (
            "[[proxy]]\nkind = \"snoop\"\ninterface = \"w\"\nports = [0]\n",
            "p.toml:4:10: `proxy.0.ports` takes a list of whole numbers from 1 to 65535",
        ),
        (
            "name = \"a b\"\n[[proxy]]\nkind = \"snoop\"\ninterface = \"w\"\n",
            "p.toml:1:8: \"a b\" is no name of a daemon",
        ),
        (
            "metrics = \"9464\"\n[[proxy]]\nkind = \"snoop\"\ninterface = \"w\"\n",
            "p.toml:1:11: \"9464\" is no address with a port",
        ),
        (
            "[[proxy]]\nkind = \"snoop\"\ninterface = \"w\"\n[[proxy]]\nkind = \"snoop\"\ninterface = \"v\"\n",
            "p.toml:5:8: two proxies are called \"snoop\", the other at p.toml:2:8",
        ),
        (
            "[[proxy]]\nkind = \"snoop\"\ninterface = \"w\"\nrate_mbps = 20\n\
             [[proxy]]\nkind = \"mtcp\"\ninterface = \"w\"\nrate_mbps = 2.5\n",
            "p.toml:8:13: two rates for \"w\": 20 and 2.5 Mb/s (an interface has one:",
        ),
        (
            "[[proxy]]\nkind = \"split\"\ninterface = \"w\"\nmobile_congestoin = \"bbr\"\n",
            "p.toml:4:1: unknown key `mobile_congestoin` in `proxy.0` (did you mean `mobile_congestion`?)",
        ),
    ] {
        let said = read(text).unwrap_err();
        assert!(said.starts_with(says), "{text}\n{said}\n{says}");
    }
}

#[test]
fn a_rate_may_be_set_for_several_interfaces_and_twice_for_one() {
    let proxy = |kind: &str, interface: &str, rate: &str| {
        format!("[[proxy]]\nkind = \"{kind}\"\ninterface = \"{interface}\"\n{rate}\n")
    };
    let snoop = proxy("snoop", "w", "rate_mbps = 20\nports = [80]");
    for other in
        [proxy("mtcp", "v", "rate_mbps = 5"), proxy("mtcp", "w", "rate_mbps = 20.0"), proxy("mtcp", "w", "")]
    {
        read(&format!("{snoop}{other}")).unwrap();
    }
}

#[test]
fn a_misspelt_key_is_answered_with_keys_of_the_kind_only() {
    for kind in keys::KindKey::ALL {
        let said = read(&format!("zzzzzzzz = 1\n[[proxy]]\nkind = \"{}\"\nqqqqqqqq = 1\n", kind.word()))
            .unwrap_err();
        let told =
            said.lines().find(|line| line.contains("`qqqqqqqq` in `proxy.0`")).expect("a problem each");
        let listed = told.split_once("(known keys: ").unwrap().1.trim_end_matches(')');
        let listed: BTreeSet<&str> = listed.split(", ").collect();
        let taken: BTreeSet<&str> =
            keys::PROXY_KEYS.iter().map(|key| key.name).filter(|key| kind.takes(key)).collect();
        assert_eq!(listed, taken, "{}", kind.word());
        assert!(said.contains("unknown key `zzzzzzzz`"), "{said}");
    }
    // The advice for a misspelt key does not name keys of other kinds, which would be rejected too.
    let said = read("[[proxy]]\nkind = \"mtcp\"\ninterface = \"w\"\nlocal_limits = 3\n").unwrap_err();
    assert!(!said.contains("`local_limit`"), "{said}");
}

#[test]
fn a_socket_for_samples_is_in_a_writable_folder() {
    let folders = |samples: &str| {
        let text = format!(
            "[[proxy]]\nkind = \"neighborhood-red\"\ninterface = \"w\"\nsamples = \"{samples}\"\nneighborhood_red = {{ bandwidth_mbps = 54 }}\n"
        );
        read(&text).unwrap().writable_folders()
    };
    assert_eq!(folders("socket:/var/lib/radio/samples"), [Path::new("/var/lib/radio")]);
    assert_eq!(folders("socket:samples"), [Path::new(".")]);
    for read_alone in ["survey", "file:/var/lib/radio/samples"] {
        assert_eq!(folders(read_alone), Vec::<PathBuf>::new());
    }
}

#[test]
fn every_key_belongs_to_some_kind() {
    let taken = |key: &str| keys::KindKey::ALL.iter().any(|kind| kind.takes(key));
    let orphans: Vec<_> = keys::PROXY_KEYS.iter().map(|key| key.name).filter(|key| !taken(key)).collect();
    assert_eq!(orphans, Vec::<&str>::new());
}

/// `UPDATE_REFERENCE=1 cargo test -p hopline-daemon config::tests::the_reference_has_every_key` updates the page.
#[test]
fn the_reference_has_every_key() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/proxy-keys.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let heading = "## Every key\n";
    let (before, after) = text.split_once(heading).unwrap();
    let expected = keys::reference();
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, format!("{before}{heading}{expected}")).unwrap();
    } else {
        assert!(after == expected, "docs/proxy-keys.md is out of date; see the comment above this test");
    }
}

#[test]
fn every_key_of_a_proxy_has_a_default_or_is_required_and_has_an_example() {
    let reference = keys::reference();
    let of_kinds = reference.split("\n### `[proxy.").next().unwrap();
    let rows = of_kinds.lines().filter(|line| line.starts_with("| `"));
    let unsaid: Vec<&str> = rows.filter(|row| row.split(" | ").any(|cell| cell.trim().is_empty())).collect();
    assert_eq!(unsaid, Vec::<&str>::new(), "Key::example, and \"; default: …\" at the end of the text");
}

#[test]
fn the_shortest_file_of_each_kind_is_complete_and_minimal() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    for &kind in keys::KindKey::ALL {
        let digits =
            if matches!(kind, keys::KindKey::HomeAgent | keys::KindKey::BaseStation) { 16 } else { 32 };
        secret(&key, "07".repeat(digits));
        let least = keys::minimal_section(kind);
        let read = |text: &str| {
            let key = key.to_str().unwrap();
            read(
                &text
                    .replace("\"link.key\"", &format!("\"{key}\""))
                    .replace("= drone-7.key", &format!("= {key}")),
            )
        };
        read(&least).unwrap_or_else(|said| panic!("{least}: {said}"));
        for line in least.lines().skip(2) {
            let without: String =
                least.lines().filter(|other| *other != line).map(|line| format!("{line}\n")).collect();
            let name = line.split(' ').next().unwrap();
            let said = read(&without).expect_err(line);
            assert!(said.contains(&format!("`{name}")) || said.contains(name), "{line}: {said}");
        }
        for one in kind.needs_one_of() {
            let first = kind.needs_one_of()[0];
            let [first, one] = [first, *one].map(|key| format!("{} = {}", key.name, key.example.unwrap()));
            read(&least.replace(&first, &one)).unwrap_or_else(|said| panic!("{one}: {said}"));
        }
    }
}

#[test]
fn a_proxy_without_a_key_is_that_with_its_stated_default() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("key");
    let mut compared = 0;
    let mut wrong = Vec::new();
    for &kind in keys::KindKey::ALL {
        let digits =
            if matches!(kind, keys::KindKey::HomeAgent | keys::KindKey::BaseStation) { 16 } else { 32 };
        secret(&key_file, "07".repeat(digits));
        let path = key_file.to_str().unwrap();
        let least = keys::minimal_section(kind)
            .replace("\"link.key\"", &format!("\"{path}\""))
            .replace("= drone-7.key", &format!("= {path}"));
        let without = read(&least).unwrap_or_else(|said| panic!("{least}: {said}"));
        // An explicit `fallback` and the default are stored differently; EntranceConfig::fallback returns the same for both.
        let is_free = |key: &&hopline_config::schema::Key| {
            key.name != "fallback" && kind.takes(key.name) && !least.contains(&format!("\n{} = ", key.name))
        };
        for key in keys::PROXY_KEYS.iter().filter(is_free) {
            let Some(value) = keys::stated(key, kind) else { continue };
            // Keys that need another key, such as those of SOCKS, are rejected without it.
            let Ok(with) = read(&format!("{least}\n{} = {value}\n", key.name)) else { continue };
            compared += 1;
            if with != without {
                wrong.push(format!("{} of {}: {value}", key.name, kind.word()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(compared > 50, "{compared}");
}

#[test]
fn the_example_of_each_key_is_of_its_kind() {
    for key in keys::PROXY_KEYS {
        let Some(value) = key.example else { continue };
        let kind = keys::KindKey::ALL.iter().find(|kind| kind.takes(key.name)).unwrap();
        let line = if key.name == "kind" { String::new() } else { format!("{} = {value}\n", key.name) };
        let text = format!("[[proxy]]\nkind = \"{}\"\n{line}", kind.word());
        let source = Arc::new(Source { name: "p.toml".into(), text });
        let document = hopline_config::document::parse(&source).unwrap();
        unknown::check(&document).unwrap_or_else(|problems| panic!("{line}: {problems}"));
    }
}

/// The tests of the documentation check the files on the page.
#[test]
fn the_guide_has_a_file_of_every_kind() {
    let guide = include_str!("../../../../docs/proxy.md");
    let is_shown = |kind: &&str| guide.contains(&format!("\nkind = \"{kind}\"\n"));
    let unsaid: Vec<_> =
        keys::KindKey::ALL.iter().map(|kind| kind.word()).filter(|kind| !is_shown(kind)).collect();
    assert_eq!(unsaid, ["mtcp", "nack", "nack-host", "arq"], "their files are as those of snoop and opaque");
}

/// Returns a section for each kind of proxy that reads a secret. `path`: file with 64 digits. `login`: file of a SOCKS login.
fn readers(path: &Path, login: &Path) -> Vec<String> {
    let (path, login) = (path.display(), login.display());
    let key = format!("key_file = \"{path}\"\n");
    let ends = "local = \"192.0.2.1\"\npeer = \"192.0.2.2\"\n";
    vec![
        format!("[[proxy]]\nkind = \"opaque\"\n{ends}{key}"),
        format!("[[proxy]]\nkind = \"arq\"\n{ends}{key}"),
        format!("[[proxy]]\nkind = \"d-proxy\"\ninterface = \"wlan0\"\n{ends}{key}"),
        format!("[[proxy]]\nkind = \"mobile-host\"\naddress = \"10.9.0.7\"\ninterfaces = [\"wlan0\"]\n{key}"),
        format!("[[proxy]]\nkind = \"gateway-exit\"\npeers = [\"drone-7 = {path}\"]\n"),
        format!(
            "[[proxy]]\nkind = \"gateway\"\nexit = \"192.0.2.7:7172\"\nidentity = \"a\"\nsocks = \"127.0.0.1:1080\"\n{key}socks_login_file = \"{login}\"\n"
        ),
    ]
}

#[test]
fn a_secret_readable_by_other_users_is_rejected_with_the_command_to_fix_it() {
    let folder = tempfile::tempdir().unwrap();
    let [key, login] = ["link.key", "login"].map(|name| folder.path().join(name));
    secret(&key, "07".repeat(32));
    secret(&login, "user:password");
    for text in readers(&key, &login) {
        assert!(read(&text).is_ok(), "{text}");
        for mode in [0o644, 0o640, 0o604, 0o660, 0o602] {
            chmod(&key, mode);
            let said = read(&text).unwrap_err();
            assert!(said.contains(&format!("may read or write it (mode {mode:04o})")), "{said}");
            assert!(said.contains(&format!("chmod 600 {}", key.display())), "{said}");
        }
        chmod(&key, 0o400);
        assert!(read(&text).is_ok(), "{text}");
    }
    chmod(&login, 0o644);
    let said = read(readers(&key, &login).last().unwrap()).unwrap_err();
    assert!(said.contains(&format!("chmod 600 {}", login.display())), "{said}");
    for bytes in [16, 32] {
        secret(&key, "07".repeat(bytes));
        chmod(&key, 0o644);
        let said = crate::host_key(key.to_str().unwrap(), "10.9.0.7".parse().unwrap()).unwrap_err();
        assert!(said.to_string().contains("chmod 600"), "permissions are looked at first: {said}");
    }
}

#[test]
fn a_secret_that_is_no_regular_file_is_rejected_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), rustix::fs::Mode::RUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    fs::create_dir(path("folder")).unwrap();
    secret(&path("login"), "user:password");
    std::os::unix::fs::symlink("fifo", path("link")).unwrap();
    for (file, kind) in [
        (path("fifo"), "a FIFO"),
        (path("link"), "a FIFO"),
        (path("socket"), "a socket"),
        (path("folder"), "a directory"),
        (PathBuf::from("/dev/zero"), "a device"),
    ] {
        for text in readers(&file, &path("login")) {
            let said = read(&text).unwrap_err();
            let says = format!("{}: {kind}", file.display());
            assert!(said.contains(&says) && said.contains("name the file itself"), "{said}");
        }
    }
}

#[test]
fn a_link_to_a_secret_is_checked_by_its_target() {
    let folder = tempfile::tempdir().unwrap();
    let [key, link, login] = ["link.key", "link", "login"].map(|name| folder.path().join(name));
    secret(&key, "07".repeat(32));
    secret(&login, "user:password");
    std::os::unix::fs::symlink(&key, &link).unwrap();
    for text in readers(&link, &login) {
        assert!(read(&text).is_ok(), "{text}");
    }
    chmod(&key, 0o644);
    for text in readers(&link, &login) {
        assert!(read(&text).unwrap_err().contains("mode 0644"));
    }
    // A user that may write to the folder of the link's target may replace the target.
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    secret(&open.join("key"), "07".repeat(32));
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(open.join("key"), &link).unwrap();
    chmod(&open, 0o777);
    for text in readers(&link, &login) {
        let said = read(&text).unwrap_err();
        assert!(said.contains("open: all users may write to this folder"), "{said}");
        assert!(said.contains(&format!("chmod go-w {}", open.display())), "{said}");
    }
}

#[test]
fn malformed_secrets_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let [path, login] = ["link.key", "login"].map(|name| folder.path().join(name));
    secret(&login, "user:password");
    let digits = "aF".repeat(32);
    let (bytes, key) = ([0x80; 32], path.display());
    for right in [
        digits.clone(),
        format!("{digits}\n"),
        format!("{digits}\r\n"),
        format!("\u{feff}{digits}\n"),
        format!("# of the link to the hut\n\n  {digits}  \n"),
    ] {
        secret(&path, &right);
        assert!(readers(&path, &login).iter().all(|text| read(text).is_ok()), "{right:?}");
    }
    let cases: [(Vec<u8>, &str); 12] = [
        (b"".to_vec(), "there is no shared key"),
        (b"7".to_vec(), "link.key:1:2: 1 digits are not 64"),
        ("7".repeat(63).into_bytes(), "63 digits are not 64"),
        ("7".repeat(66).into_bytes(), "66 digits are not 64"),
        (format!("{digits} {digits}").into_bytes(), "more than a shared key"),
        ("g7".repeat(32).into_bytes(), "no hexadecimal digit"),
        ("00".repeat(32).into_bytes(), "zeros are no secret"),
        (format!("private:{digits}").into_bytes(), "half of a pair of keys"),
        (bytes.to_vec(), "32 bytes that are no text"),
        ([&bytes[..], b"\n"].concat(), "33 bytes that are no text"),
        (b"\xff\xfe0\x007\x00".to_vec(), "UTF-16"),
        (vec![b'7'; (1 << 20) + 1], "larger than 1 MiB"),
    ];
    for (wrong, says) in cases {
        secret(&path, &wrong);
        for text in readers(&path, &login) {
            let said = read(&text).unwrap_err();
            assert!(said.contains(says), "{says}: {said}");
            assert!(!said.contains(&digits), "a secret is not shown: {said}");
            let made = match text.contains("mobile-host") {
                true => format!("(umask 077; hopline proxy host-key NETWORK.KEY 10.9.0.7 > {key})"),
                false => {
                    format!("(umask 077; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > {key})")
                }
            };
            assert!(said.contains(&made), "{made}: {said}");
        }
    }
    secret(&path, bytes);
    let said = read(&readers(&path, &login)[0]).unwrap_err();
    assert!(
        said.contains(&format!("od -An -v -tx1 {key} | tr -d ' \\n'")),
        "what writes them as digits: {said}"
    );
    secret(&path, &digits);
    secret(&login, "nonsense");
    let said = read(readers(&path, &login).last().unwrap()).unwrap_err();
    assert!(said.contains("login: no login") && said.contains("USER:PASSWORD"), "{said}");
    let absent = read(&readers(&folder.path().join("other"), &login)[0]).unwrap_err();
    assert!(absent.contains("p.toml:5:12") && absent.contains("there is no such file"), "{absent}");
    assert!(absent.contains("make a key"), "{absent}");
}

#[test]
fn a_key_given_as_a_file_name_is_not_printed() {
    let digits = "5ec4e75e".repeat(8);
    for text in &readers(Path::new(&digits), Path::new("login"))[..5] {
        let said = read(text).unwrap_err();
        assert!(said.contains("this is a key, but the name of a key file is expected"), "{said}");
        assert!(!said.contains(&digits), "{said}");
    }
}

/// Returns a complete gateway and exit.
fn gateways(folder: &Path) -> [String; 2] {
    let path = folder.join("key");
    secret(&path, "07".repeat(32));
    let path = path.display();
    [
        format!(
            "[[proxy]]\nkind = \"gateway\"\nexit = \"192.0.2.7:7172\"\nidentity = \"drone-7\"\nsocks = \"127.0.0.1:1080\"\nkey_file = \"{path}\"\n"
        ),
        format!("[[proxy]]\nkind = \"gateway-exit\"\npeers = [\"drone-7 = {path}\"]\n"),
    ]
}

#[test]
fn gateways_use_tpa_unless_configured_for_tpa_wide() {
    let folder = tempfile::tempdir().unwrap();
    for text in gateways(folder.path()) {
        let transport = |said: &str| match &read(&format!("{text}{said}")).unwrap().proxies[0].task {
            Task::Gateway(task) => task.config.transport.clone(),
            Task::GatewayExit(task) => task.config.transport.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!([transport(""), transport("transport = \"tpa\"\n")], [Transport::tpa(), Transport::tpa()]);
        assert_eq!(transport("transport = \"tpa-wide\"\n"), Transport::tpa_wide());
        let Transport::Tpa(config) = transport("cwnd_max = 3\n") else { panic!("TPA is the default") };
        assert_eq!(config.cwnd_max(), 3);
        let wrong = |said: &str| read(&format!("{text}{said}")).unwrap_err();
        let both = wrong("transport = \"tpa-wide\"\ncwnd_max = 3\n");
        assert!(both.contains("TPA-wide has no largest window") && both.contains("leave out"), "{both}");
        let other = wrong("transport = \"quic\"\n");
        assert!(other.contains("\"tpa\"") && other.contains("\"tpa-wide\""), "{other}");
    }
}

#[test]
fn a_gateway_falls_back_unencrypted_only_if_configured() {
    let folder = tempfile::tempdir().unwrap();
    let [text, _] = gateways(folder.path());
    let clear = |said: &str| match &read(&format!("{text}{said}")).unwrap().proxies[0].task {
        Task::Gateway(task) => (task.config.fallback(), task.config.may_fall_back_unencrypted()),
        other => panic!("{other:?}"),
    };
    let wide = "transport = \"tpa-wide\"\n";
    let tcp = "fallback = \"tcp\"\n";
    assert_eq!((clear(""), clear(wide)), ((Fallback::Tcp, false), (Fallback::Refuse, false)));
    assert_eq!(clear(&format!("{wide}{tcp}")), (Fallback::Tcp, true));
    assert_eq!(clear("fallback = \"refuse\"\n"), (Fallback::Refuse, false));
    let both = format!("{text}{wide}announce = \"wlan0\"\n");
    let wrong = read(&both).unwrap_err();
    assert!(
        wrong.contains("in clear, beside an encrypted trunk") && wrong.contains("fallback = \"tcp\""),
        "{wrong}"
    );
    assert!(read(&format!("{both}{tcp}")).is_ok());
}

#[test]
fn socks_for_other_hosts_requires_a_login() {
    let folder = tempfile::tempdir().unwrap();
    let [text, _] = gateways(folder.path());
    let open = text.replace("127.0.0.1:1080", "0.0.0.0:1080");
    let wrong = read(&open).unwrap_err();
    assert!(wrong.contains("could have connections made to anywhere"), "{wrong}");
    assert!(wrong.contains("socks_login_file") && wrong.contains("127.0.0.1:1080"), "{wrong}");
    let login = folder.path().join("login");
    secret(&login, "user:secret\n");
    assert!(read(&format!("{open}socks_login_file = \"{}\"\n", login.display())).is_ok());
}

#[test]
fn limits_of_gateways_are_taken_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let [gateway, exit] = gateways(folder.path());
    let said = "max_connections = 3000\nmax_wait_s = 20\nallowed = [\"10.1.0.0/16 80\"]\n";
    let more = "reset_after_s = 30\nspare_connections = 0\n";
    let gateway = gateway.replace("192.0.2.7:7172", "exit.example:7172");
    match &read(&format!("{gateway}{said}{more}")).unwrap().proxies[0].task {
        Task::Gateway(task) => {
            let config = &task.config;
            assert_eq!(config.exit.to_string(), "exit.example:7172");
            assert_eq!((config.max_connections, config.max_wait.as_secs()), (3000, 20));
            assert_eq!((config.reset_after.as_secs(), config.spare_connections), (30, 0));
            assert_eq!(config.allowed, ["10.1.0.0/16 80".parse().unwrap()]);
        }
        other => panic!("{other:?}"),
    }
    match &read(&format!("{exit}{said}")).unwrap().proxies[0].task {
        Task::GatewayExit(task) => {
            assert_eq!((task.config.max_connections, task.config.max_wait.as_secs()), (3000, 20));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_gateway_has_a_queue_only_if_it_announces() {
    let folder = tempfile::tempdir().unwrap();
    for text in gateways(folder.path()) {
        let task = |said: &str| read(&format!("{text}{said}")).unwrap().proxies[0].task.clone();
        let queues = |said: &str| task(said).queues().collect::<Vec<_>>();
        assert_eq!((queues(""), task("").announced()), (vec![], None));
        assert_eq!(queues("announce = \"wlan0\"\n"), [26_735]);
        let announced = task("announce = \"wlan0\"\nqueue = 7\n").announced().unwrap();
        assert_eq!((announced.queue, announced.interface.as_str()), (7, "wlan0"));
        let wrong = read(&format!("{text}announce = \"-j\"\n")).unwrap_err();
        assert!(wrong.contains("\"-j\" is no name of an interface"), "{wrong}");
    }
}

#[test]
fn a_proxy_that_can_never_receive_a_packet_is_rejected_with_both_positions() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("link.key");
    secret(&key, "07".repeat(32));
    let d_proxy = format!(
        "[[proxy]]\nkind = \"d-proxy\"\ninterface = \"wlan0\"\nlocal = \"192.0.2.1\"\npeer = \"192.0.2.2\"\nkey_file = \"{}\"\n",
        key.display()
    );
    let split = |rest: &str| {
        format!("[[proxy]]\nname = \"{}\"\nkind = \"split\"\ninterface = \"wlan0\"\n{rest}", rest.len())
    };
    let mtcp = |rest: &str| format!("[[proxy]]\nkind = \"mtcp\"\ninterface = \"wlan0\"\n{rest}");
    let snoop = |rest: &str| format!("{SNOOP}{rest}");
    for (text, place, first) in [
        (
            format!("{SNOOP}{d_proxy}"),
            "p.toml:6:13: the proxy \"d-proxy\"",
            "\"snoop\" has all of them (p.toml:3:13)",
        ),
        (format!("{SNOOP}{}", mtcp("ports = [80]\n")), "p.toml:7:9", "p.toml:3:13"),
        (
            format!("{}{}", snoop("subnets = [\"10.1.0.0/16\"]\n"), mtcp("subnets = [\"10.1.2.0/24\"]\n")),
            "p.toml:8:11",
            "p.toml:4:11",
        ),
        (format!("{}{}", split(""), split("ports = [80]\n")), "p.toml:9:9", "p.toml:4:13"),
    ] {
        let said = read(&text).unwrap_err();
        assert!(said.starts_with(place) && said.contains(first), "{said}");
        assert!(said.contains("the first has it"), "{said}");
    }
    for text in [
        format!("{}{}", snoop("ports = [80]\n"), mtcp("")),
        format!("{}{}", snoop("subnets = [\"10.1.2.0/24\"]\n"), mtcp("subnets = [\"10.1.0.0/16\"]\n")),
        format!("{}{}", snoop("subnets = [\"10.1.0.0/16\"]\n"), mtcp("subnets = [\"fd00::/8\"]\n")),
        format!("{}{}", split("ports = [80]\n"), split("")),
        format!("{SNOOP}{}", split("")),
        format!("{SNOOP}{d_proxy}stands = \"host\"\n"),
    ] {
        read(&text).unwrap_or_else(|said| panic!("{said}"));
    }
}

#[test]
fn a_network_with_host_bits_is_rejected_with_the_probable_network() {
    let said = read(&format!("{SNOOP}subnets = [\"10.1.2.3/16\"]\n")).unwrap_err();
    assert!(said.starts_with("p.toml:4:11: \"10.1.2.3/16\" is no subnet"), "{said}");
    assert!(said.contains("10.1.0.0/16 is meant? The host alone is 10.1.2.3/32"), "{said}");
    assert!(read(&format!("{SNOOP}subnets = [\"10.1.2.3\", \"10.1.2.3/32\", \"fd01::/16\"]\n")).is_ok());
}

#[test]
fn conflicts_of_two_tunnels_are_reported_at_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("link.key");
    secret(&key, "07".repeat(32));
    let tunnel = |name: &str, rest: &str| {
        format!(
            "[[proxy]]\nname = \"{name}\"\nkind = \"opaque\"\nlocal = \"192.0.2.1\"\npeer = \"192.0.2.2\"\nkey_file = \"{}\"\n{rest}",
            key.display()
        )
    };
    for (second, says) in [
        (
            "tun = \"dproxy1\"\nport = 1022\n",
            "p.toml:14:8: two proxies have UDP port 1022 of 192.0.2.1, the other at p.toml:4:9",
        ),
        ("tun = \"dproxy1\"\n", "p.toml:10:9: two proxies have UDP port 1022"),
        ("port = 1023\ntun = \"dproxy0\"\n", "p.toml:14:7: two proxies have the interface dproxy0"),
        ("port = 1023\nmtu = 90\n", "p.toml:14:7: `mtu` must be"),
    ] {
        let said = read(&format!("{}{}", tunnel("a", ""), tunnel("b", second))).unwrap_err();
        assert!(said.starts_with(says), "{said}");
    }
}

#[test]
fn a_file_above_one_mebibyte_is_rejected_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.toml");
    fs::write(&path, format!("{SNOOP}# {}", "x".repeat(1 << 20))).unwrap();
    for said in [Config::load(&path).unwrap_err().to_string(), DaemonId::load(&path).unwrap_err().to_string()]
    {
        assert!(said.contains("larger than 1 MiB"), "{said}");
    }
}
