use super::chain::{Chain, Hook};
use super::*;
use crate::subnet::Subnet;
use hopline_middlebox::announce::Role;
use std::str::FromStr;

fn queued(subnets: &[&str], ports: &[u16]) -> Queued {
    let subnets = subnets.iter().map(|subnet| Subnet::from_str(subnet).unwrap()).collect();
    Queued {
        queue: 7,
        interface: "wlan0".into(),
        versions: Versions::Both,
        subnets,
        ports: ports.to_vec(),
        hooks: Hooks::Forward,
        mark: 0x686f,
    }
}

fn rules_of(queued: &Queued) -> Vec<String> {
    chain::rules_of(queued, Family::V4, Hook::Forward)
}

#[test]
fn both_directions_of_an_interface_are_queued_and_bypass_without_a_reader() {
    assert_eq!(
        rules_of(&queued(&[], &[])),
        [
            "-o wlan0 -p tcp -j NFQUEUE --queue-num 7 --queue-bypass",
            "-i wlan0 -p tcp -j NFQUEUE --queue-num 7 --queue-bypass"
        ]
    );
}

#[test]
fn hosts_and_ports_restrict_both_directions() {
    let rules = rules_of(&queued(&["10.1.0.0/16", "10.2.0.7"], &[80, 443]));
    assert_eq!(rules.len(), 4);
    assert!(
        rules[0].starts_with("-o wlan0 -d 10.1.0.0/16 -p tcp -m multiport --sports 80,443 "),
        "{rules:?}"
    );
    assert!(
        rules[3].starts_with("-i wlan0 -s 10.2.0.7/32 -p tcp -m multiport --dports 80,443 "),
        "{rules:?}"
    );
}

#[test]
fn at_the_end_of_a_link_retransmissions_are_not_queued_again() {
    let queued = Queued { hooks: Hooks::Local, ..queued(&[], &[]) };
    let [forward, input, output] =
        [Hook::Forward, Hook::Input, Hook::Output].map(|place| chain::rules_of(&queued, Family::V4, place));
    assert_eq!(forward, Vec::<String>::new());
    assert_eq!(input, ["-i wlan0 -p tcp -j NFQUEUE --queue-num 7 --queue-bypass"]);
    assert_eq!(output, ["-o wlan0 -p tcp -m mark ! --mark 0x686f -j NFQUEUE --queue-num 7 --queue-bypass"]);
}

#[test]
fn an_announcer_queues_its_handshakes_and_a_responder_those_of_hosts_behind_it_too() {
    let at = |role| {
        let announced = HandshakeQueue { queue: 7, interface: "wlan0".into(), role };
        [Hook::Forward, Hook::Input, Hook::Output].map(|place| chain::rules_for_handshakes(&announced, place))
    };
    let rule =
        |way| format!("{way} wlan0 -p tcp --tcp-flags SYN SYN -j NFQUEUE --queue-num 7 --queue-bypass");
    assert_eq!(at(Role::Client), [vec![], vec![rule("-i")], vec![rule("-o")]]);
    assert_eq!(at(Role::Server), [vec![rule("-o"), rule("-i")], vec![rule("-i")], vec![rule("-o")]]);
}

#[test]
fn more_ports_than_fit_in_one_rule_make_several_rules() {
    let ports: Vec<u16> = (1..=31).collect();
    let rules = rules_of(&queued(&[], &ports));
    assert_eq!(rules.len(), 6);
    assert!(rules[2].contains("--sports 31 "), "{rules:?}");
}

#[test]
fn hosts_of_the_other_ip_version_match_nothing() {
    let of = |subnets: &[&str]| {
        [Family::V4, Family::V6].map(|family| {
            let rules = chain::rules_of(&queued(subnets, &[]), family, Hook::Forward);
            // Neighbour discovery is ICMPv6.
            assert!(rules.iter().all(|rule| rule.contains(" -p tcp ")), "{rules:?}");
            rules.into_iter().map(|rule| rule.split(" -p").next().unwrap().to_owned()).collect::<Vec<_>>()
        })
    };
    const NONE: [&str; 0] = [];
    assert_eq!(of(&["fd00::/8"]), [&NONE[..], &["-o wlan0 -d fd00::/8", "-i wlan0 -s fd00::/8"]]);
    assert_eq!(of(&["10.1.0.0/16"]), [&["-o wlan0 -d 10.1.0.0/16", "-i wlan0 -s 10.1.0.0/16"], &NONE[..]]);
    assert_eq!(of(&["10.1.0.0/16", "fd00::/8"]).map(|rules| rules.len()), [2, 2]);
    assert_eq!(of(&[]), [["-o wlan0", "-i wlan0"], ["-o wlan0", "-i wlan0"]]);
}

#[test]
fn a_middlebox_for_ipv4_gets_no_ipv6() {
    let queued = Queued { versions: Versions::V4, ..queued(&[], &[]) };
    assert_eq!(chain::rules_of(&queued, Family::V6, Hook::Forward), Vec::<String>::new());
    assert_eq!(rules_of(&queued).len(), 2);
}

/// Rules of a Snoop, of split connections and of Neighborhood RED.
fn rules(ipv6: Ipv6Support) -> Rules {
    let calls = ConnectionMatch::LeavingBy { interface: "wlan0".into(), destinations: Vec::new() };
    Rules {
        owner: "x".into(),
        ipv6,
        tracking: Tracking::InUse,
        diversion: DiversionMark { mark: 0x686f, table: 7 },
        queued: vec![queued(&[], &[])],
        offered: vec![FullyQueuedInterface { queue: 8, interface: "wlan0".into() }],
        announced: Vec::new(),
        diverted: vec![DivertedConnections { port: 5000, connections: calls, ports: Vec::new(), queue: 9 }],
        guarded: Vec::new(),
        shaped: Vec::new(),
        tuns: Vec::new(),
    }
}

#[test]
fn a_machine_without_ipv6_has_no_rules_for_it() {
    let text = rules(Ipv6Support::Absent).to_string();
    for word in ["ip6", "ipv6_addr", "nfproto ipv6", "ip -6", "[::1]", "translated6"] {
        assert!(!text.contains(word), "{word} in\n{text}");
    }
    assert!(text.contains("iptables-restore") && text.contains("ip -4 rule"), "{text}");
}

#[test]
fn without_ip6tables_packets_and_connections_over_ipv6_pass() {
    let text = rules(Ipv6Support::WithoutChains).to_string();
    for word in ["ip6tables", "translated6", "ip -6 rule", "tproxy ip6"] {
        assert!(!text.contains(word), "{word} in\n{text}");
    }
}

#[test]
fn a_machine_with_ipv6_has_the_same_rules_for_both_versions() {
    let text = rules(Ipv6Support::Present).to_string();
    let count = |words: &str| text.matches(words).count();
    assert_eq!((count("ip6tables-restore"), count("iptables-restore")), (4, 4));
    assert_eq!((count("update @translated {"), count("update @translated6 {")), (4, 4));
    assert_eq!((count("@translated notrack"), count("@translated6 notrack")), (1, 1));
}

#[test]
fn packets_of_moved_connections_are_dropped_after_the_firewall_and_no_others() {
    let guarded = |hosts: &[&str], ports: &[u16]| UnforwardedPackets {
        interface: "wlan0".into(),
        network: Subnet::from_str("10.9.0.0/24").unwrap(),
        hosts: hosts.iter().map(|host| Subnet::from_str(host).unwrap()).collect(),
        ports: ports.to_vec(),
    };
    let rules_of = |guarded: UnforwardedPackets| {
        let text = held_syns::chains(&[], &[guarded], &[Family::V4, Family::V6]);
        let lines = text.lines().map(|line| line.trim().to_owned());
        lines.filter(|line| line.ends_with(" drop")).collect::<Vec<_>>()
    };
    let no_syn = "tcp flags & (fin | syn | rst | ack) != syn";
    assert_eq!(
        rules_of(guarded(&["10.9.0.0/24"], &[])),
        [
            format!("{no_syn} iifname \"wlan0\" meta nfproto ipv4 ip saddr {{ 10.9.0.0/24 }} drop"),
            format!("{no_syn} oifname \"wlan0\" meta nfproto ipv4 ip daddr {{ 10.9.0.0/24 }} drop"),
        ]
    );
    // What is not split passes.
    let of_port = rules_of(guarded(&["10.9.0.0/24"], &[80]));
    assert_eq!(of_port.len(), 4);
    assert!(
        of_port.iter().all(|rule| rule.contains("tcp dport { 80 }") || rule.contains("tcp sport { 80 }"))
    );
}

#[test]
fn connections_between_mobile_hosts_pass_before_others_are_dropped_or_diverted() {
    let network = Subnet::from_str("10.9.0.0/24").unwrap();
    let guarded =
        UnforwardedPackets { interface: "wlan0".into(), network, hosts: vec![network], ports: vec![] };
    let text = held_syns::chains(&[], &[guarded], &[Family::V4, Family::V6]);
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} in\n{text}"));
    let passes = "meta nfproto ipv4 ip saddr { 10.9.0.0/24 } ip daddr { 10.9.0.0/24 } accept";
    assert!(at(passes) < at("drop"), "{text}");
    assert_eq!(text.matches(passes).count(), 1);
}

#[test]
fn no_rule_enables_connection_tracking_by_itself() {
    let tracked = rules(Ipv6Support::Present);
    let untracked = Rules { tracking: Tracking::Absent, ..tracked.clone() };
    let [tracked, untracked] = [tracked, untracked].map(|rules| rules.to_string());
    for word in ["ct", "snat", "notrack", "hopline-x.nat"] {
        let has = |text: &str| text.split_whitespace().any(|other| other == word);
        assert!(has(&tracked) && !has(&untracked), "{word} in\n{untracked}");
    }
    assert!(untracked.contains("tproxy") && untracked.contains("NFQUEUE"), "{untracked}");
}

#[test]
fn a_chain_is_removed_with_every_jump_to_it() {
    let listing = "-P FORWARD ACCEPT\n-N HOPLINE-x\n-N HOPLINE-xy\n-A FORWARD -j HOPLINE-xy\n-A FORWARD -j HOPLINE-x\n\
                   -A FORWARD -j HOPLINE-x\n-A HOPLINE-x -o wlan0 -j ACCEPT\n";
    let chain = Chain::for_middleboxes("x", Family::V4, Hook::Forward);
    assert!(chain.is_in(listing) && !Chain::for_middleboxes("", Family::V4, Hook::Forward).is_in(listing));
    assert_eq!(
        chain.removal(listing),
        "*security\n-D FORWARD -j HOPLINE-x\n-D FORWARD -j HOPLINE-x\n-F HOPLINE-x\n-X HOPLINE-x\nCOMMIT\n"
    );
}

/// Listeners at these ports, each with a queue of its own.
fn captured(ports: [u16; 2], calls: impl Fn() -> ConnectionMatch) -> [DivertedConnections; 2] {
    ports.map(|port| DivertedConnections { port, connections: calls(), ports: vec![80], queue: port - 4993 })
}

#[test]
fn diverted_connections_are_matched_after_the_firewall_by_source_or_destination() {
    let subnets = vec![Subnet::from_str("10.1.0.0/16").unwrap()];
    let interface = || "wlan0".to_owned();
    let calls = [
        ConnectionMatch::ArrivingOn {
            interface: interface(),
            sources: subnets.clone(),
            destinations: Vec::new(),
        },
        ConnectionMatch::LeavingBy { interface: interface(), destinations: Vec::new() },
    ];
    let captured =
        calls.map(|calls| DivertedConnections { port: 5000, connections: calls, ports: vec![80], queue: 7 });
    let text = held_syns::chains(&captured, &[], &[Family::V4, Family::V6]);
    assert!(text.contains("hook forward priority 2147483646;"), "behind all other chains: {text}");
    let rules: Vec<&str> = text.lines().filter(|line| line.contains("dport")).map(str::trim).collect();
    const TAIL: &str = " tcp dport { 80 } meta mark set meta mark & 0x0000ffff | 0x13880000 accept";
    assert_eq!(
        rules,
        [
            "iifname \"wlan0\" meta nfproto ipv4 ip saddr { 10.1.0.0/16 }".to_owned() + TAIL,
            "iifname != \"wlan0\" oifname \"wlan0\" meta nfproto ipv4".to_owned() + TAIL,
            "iifname != \"wlan0\" oifname \"wlan0\" meta nfproto ipv6".to_owned() + TAIL,
        ],
        "subnets of IPv4 alone mean no call of IPv6"
    );
}

#[test]
fn syns_wait_in_the_queue_of_their_listener_and_reach_it_by_loopback() {
    let calls = || ConnectionMatch::LeavingBy { interface: "wlan0".into(), destinations: Vec::new() };
    let captured = captured([5000, 5001], calls);
    let capture = DiversionMark { mark: 0x686f, table: 7 };
    let text = table::text("hopline-x", &[Family::V4, Family::V6], capture, (&captured, &[]));
    let lines: Vec<&str> =
        text.lines().filter(|line| line.contains("tproxy") && line.contains("ip6")).map(str::trim).collect();
    let line = |priority: &str, port: u16| {
        format!(
            "iifname \"lo\" meta priority 686f:{priority} meta nfproto ipv6 meta l4proto tcp tproxy ip6 to [::1]:{port} \
             meta mark set meta mark & 0x0000ffff | 0x686f0000 accept"
        )
    };
    assert_eq!(lines, [line("1388", 5000), line("1389", 5001)]);
    assert_eq!(text.matches("tproxy ").count(), 4, "nothing is captured before it is forwarded: {text}");
    assert!(text.contains("iifname \"lo\" meta priority 686f:1 meta l4proto tcp reject with tcp reset"));
    let zones = zones::chains(capture);
    assert!(zones.contains("ct original zone 26735 meta l4proto tcp snat to :1024-9999"), "{zones}");
    assert_eq!(
        held_syns::rules(&captured),
        ["0x13880000/0xffff0000 -j NFQUEUE --queue-num 7", "0x13890000/0xffff0000 -j NFQUEUE --queue-num 8"]
            .map(|rule| format!("-p tcp --syn -m mark --mark {rule} --queue-bypass"))
    );
}

#[test]
fn journal_entries_round_trip_and_incomplete_lines_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let opened = crate::folder::Folder::open(folder.path()).unwrap();
    let journal = journal::Journal::of("x", &opened);
    assert_eq!(journal.read().unwrap(), []);
    let made = [
        steps::CreatedObject::Chain(Chain::for_middleboxes("a", Family::V4, Hook::Input)),
        steps::CreatedObject::Rule(Family::V6, "fwmark 0x1/0xffff0000 lookup 7 pref 0".into()),
        steps::CreatedObject::Rule(Family::V4, "fwmark 0x1/0xffff0000 lookup 7 pref 1000".into()),
    ];
    made.iter().for_each(|made| journal.add(made).unwrap());
    assert_eq!(journal.read().unwrap(), made);
    let path = folder.path().join("x.rules");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 4]).unwrap();
    assert_eq!(journal.read().unwrap(), made[..2]);
    journal.remove().unwrap();
    journal.remove().unwrap();
    assert_eq!(journal.read().unwrap(), []);
}
