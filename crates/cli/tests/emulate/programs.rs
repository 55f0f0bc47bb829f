//! Programs of other projects at the nodes of an emulation: from Debian's packages, unchanged.

use super::{CHAIN, emulate, node, printed, stderr, walks};
use hopline_harness::{Need, Test, tests};
use hopline_testkit::namespace::LINK;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Shell functions of scripts, beside those of all emulations.
const FUNCTIONS: &str = "\
at() { node=$1; shift; hopline exec $node -- \"$@\"; }
# Repeats a command until it succeeds, for at most 20 s.
until_ok() { tries=0; until \"$@\" > /dev/null 2>&1; do tries=$((tries + 1)); test $tries -lt 200 || return 1; sleep 0.1; done; }
# Keeps the output of a command in a file, once it succeeds.
into() { output=$1; shift; \"$@\" > $output; }
kept() { until_ok into \"$@\"; }
dir=$(mktemp -d); cd $dir; trap 'rm -rf $dir' EXIT; set -e
";

/// A chain of four nodes at 54 Mb/s.
const FAST_CHAIN: &str = "\
name = \"fast\"
duration_s = 60
radio.preset = \"dot11a\"
[nodes]
layout = \"chain\"
count = 4
spacing_m = 200
";

/// Returns nodes from `a` over `walker` and `c` to `d`. The walker leaves again and again, as a busy machine may begin late.
fn walking_relay() -> String {
    let times = (0..5).map(|walk| (f64::from(3 + 6 * walk), f64::from(5 + 6 * walk)));
    [
        "duration_s = 60\nradio.preset = \"ns2-wavelan\"\n",
        &node("a", 0, 0),
        &node("walker", 200, 0),
        &walks(200, (200, -600), times),
        &node("c", 400, 0),
        &node("d", 600, 0),
    ]
    .concat()
}

/// Returns a server, a base station at a wire, and a mobile host that loses frames of the base station, which has no ACKs.
fn lossy_radio() -> String {
    [
        "duration_s = 60\nradio.preset = \"dot11b\"\nmac.ack_policy = \"no-ack\"\n",
        &node("base", 0, 0),
        &node("mobile", 100, 0),
        &node("server", 0, 0),
        "interface = \"wired\"\n[[link]]\na = \"server\"\nb = \"base\"\nrate_mbps = 100\ndelay_ms = 5\n",
        "[[radio.loss]]\nfrom = \"base\"\nto = \"mobile\"\nmodel = \"packet\"\npacket_loss = 0.05\n",
    ]
    .concat()
}

/// Returns two ways from `a` to `d`: over `relay`, or over `b` and `c`.
fn two_ways() -> String {
    [
        "duration_s = 60\nradio.preset = \"ns2-wavelan\"\n",
        &node("a", 0, 0),
        &node("relay", 200, 0),
        &node("b", 100, 200),
        &node("c", 300, 200),
        &node("d", 400, 0),
    ]
    .concat()
}

pub(super) fn tests() -> Vec<Test> {
    let ping = tests!([LINK, Need::Program("ping")];
        pings_cross_three_hops_and_reach_ipv6_neighbours,
    );
    let iperf3 = tests!([LINK, Need::Program("iperf3")]; iperf3_measures_tcp_and_udp_over_three_hops);
    let mesh = tests!([
            LINK,
            Need::Program("curl"), Need::Program("iperf3"), Need::Program("ping"), Need::Program("python3"),
        ];
        the_programs_of_the_readme_run,
    );
    let curl = tests!([LINK, Need::Program("curl"), Need::Program("python3")];
        a_download_over_three_hops_survives_a_relay_that_walks_away_and_back,
    );
    let mosquitto = tests!([LINK, Need::Program("mosquitto"), Need::Program("mosquitto_pub")];
        mqtt_messages_pass_a_broker_two_hops_away,
    );
    let zenoh = tests!([LINK, ZENOH]; zenoh_messages_arrive_although_the_robot_leaves_for_a_while);
    let babeld = tests!([LINK, Need::Program("babeld"), Need::Program("ping"), Need::Program("ip")];
        a_mesh_of_babeld_heals_when_a_relay_fails,
    );
    let wireguard = tests!([LINK, Need::Program("wireguard-go"), Need::Program("wg"), Need::Program("ip")];
        a_wireguard_tunnel_crosses_three_hops,
    );
    let gateway = tests!([LINK, Need::Program("curl"), Need::Program("python3")];
        a_pair_of_gateways_carries_a_download,
    );
    let at_a_station = tests!([
            LINK,
            Need::Program("curl"), Need::Program("python3"), Need::Program("iptables"), Need::Program("nft"),
        ];
        snoop_at_a_base_station_repairs_losses_of_its_radio,
        a_gateway_at_a_base_station_diverts_connections_that_come_by_its_wire,
    );
    let own = tests!([LINK]; a_file_is_sent_and_received_over_three_hops);
    let quic = tests!([
            LINK,
            Need::Program("awk"), Need::Program("ip"), Need::Program("nsenter"), Need::Program("ping"),
            Need::Program("unshare"),
        ];
        the_sim_of_quic_interop_joins_its_two_networks,
    );
    let programs = [ping, iperf3, mesh, curl, mosquitto, zenoh, babeld, wireguard, gateway, own, quic];
    programs.into_iter().flatten().chain(at_a_station).collect()
}

/// Requirement of zenoh for Python.
const ZENOH: Need = Need::Of(|| {
    let tried = Command::new("python3").args(["-c", "import zenoh"]).output();
    let has = tried.is_ok_and(|tried| tried.status.success());
    (!has).then(|| "python3 has no module `zenoh`".into())
});

/// Returns what a script printed that succeeded.
fn run(scenario: &str, options: &[&str], script: &str) -> String {
    let script = format!("{FUNCTIONS}{script}");
    printed(&emulate(scenario, &[&["--best-effort"], options].concat(), &script).output().unwrap())
}

fn pings_cross_three_hops_and_reach_ipv6_neighbours() {
    let output = run(
        CHAIN,
        &[],
        "until_ok at n0 ping -c 1 -W 2 $HOPLINE_N3
         at n0 ping -n -c 1 -W 2 $HOPLINE_N3
         until_ok at n3 ping -c 1 -W 2 fe80::ff:fe00:2%air0
         at n3 ping -n -c 1 -W 2 fe80::ff:fe00:2%air0",
    );
    // Two routers have taken one each of 64.
    assert!(output.contains("from 10.0.0.4: icmp_seq=1 ttl=62"), "{output}");
    assert!(output.contains("from fe80::ff:fe00:2%air0: icmp_seq=1 ttl=64"), "{output}");
}

fn iperf3_measures_tcp_and_udp_over_three_hops() {
    let output = run(
        FAST_CHAIN,
        &[],
        // With -J it succeeds even where it is refused.
        "at n3 iperf3 -s > /dev/null &
         measured() { into $1 at n0 iperf3 -c $HOPLINE_N3 -t 1 -J $2; ! grep '\"error\"' $1; }
         until_ok measured tcp.json; until_ok measured udp.json '-u -b 1M -l 1000'
         cat tcp.json; echo; echo ===; cat udp.json",
    );
    let [tcp, udp] = output.split("===").collect::<Vec<_>>()[..] else { panic!("{output}") };
    let [tcp, udp]: [Value; 2] = [tcp, udp].map(|text| serde_json::from_str(text).unwrap());
    // No more than the radio can carry.
    let rate = tcp["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    assert!(rate > 0.0 && rate < 27e6, "{tcp:#}");
    let datagrams = &udp["end"]["sum_received"];
    let [all, lost] = ["packets", "lost_packets"].map(|name| datagrams[name].as_u64().unwrap());
    assert!(all > lost && datagrams["jitter_ms"].is_number(), "{udp:#}");
}

fn the_programs_of_the_readme_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopline"));
    command.args(["emulate", "scenarios/mesh/mesh.toml", "--best-effort", "--watch"]).current_dir(root);
    // The minute of the file as five seconds.
    command.args(["--set", "duration_s=5", "--set", "program.2.start_s=0.5", "--set", "program.4.start_s=2"]);
    let output = command.output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.starts_with("watch it at http://127.0.0.1:"), "{said}");
    assert!(said.contains("ping: 64 bytes from 10.0.0.4: icmp_seq=1 ttl=62 "), "{said}");
    assert!(said.contains("program iperf3 at laptop: stopped after"), "{said}");
    assert!(!said.contains("not started"), "{said}");
}

fn a_download_over_three_hops_survives_a_relay_that_walks_away_and_back() {
    let output = run(
        &walking_relay(),
        &[],
        "head -c 250000 /dev/urandom > file
         at d python3 -m http.server 80 --bind $HOPLINE_D > /dev/null 2>&1 &
         kept begin at a curl --silent --fail --range 0-9 http://$HOPLINE_D/file
         at a curl --silent --fail --max-time 60 --output copy http://$HOPLINE_D/file & curl=$!
         tries=0
         while at a ping -c 1 -W 0.3 -q $HOPLINE_WALKER > /dev/null; do
             tries=$((tries + 1)); test $tries -lt 100; sleep 0.1
         done
         echo gone; wait $curl; sha256sum < file; sha256sum < copy",
    );
    let [gone, file, copy] = output.lines().collect::<Vec<_>>()[..] else { panic!("{output}") };
    assert!(gone == "gone" && file == copy, "{output}");
}

fn mqtt_messages_pass_a_broker_two_hops_away() {
    // Retained: the subscriber may come before or after them.
    let output = run(
        CHAIN,
        &[],
        "printf 'listener 1883\\nallow_anonymous true\\nuser root\\n' > broker.conf
         at n2 mosquitto -c broker.conf > /dev/null 2>&1 &
         for n in 1 2 3; do
             until_ok at n3 mosquitto_pub -h $HOPLINE_N2 -q 1 -r -t sensors/$n -m value-$n
         done
         at n0 mosquitto_sub -h $HOPLINE_N2 -q 1 -t 'sensors/#' -C 3 -W 20 | sort",
    );
    assert_eq!(output, "value-1\nvalue-2\nvalue-3\n");
}

fn zenoh_messages_arrive_although_the_robot_leaves_for_a_while() {
    let scenario = [
        "duration_s = 60\nradio.preset = \"dot11b\"\n",
        &node("station", 0, 0),
        &node("robot", 100, 0),
        &walks(100, (900, 0), [(2.0, 3.5)]),
        "[[radio.loss]]\nfrom = \"robot\"\nto = \"station\"\nboth_ways = true\nmodel = \"packet\"\npacket_loss = 0.1\n",
    ]
    .concat();
    let script = "at robot python3 $PROGRAMS/publish.py $HOPLINE_STATION & at station timeout 50 python3 $PROGRAMS/listen.py";
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/emulate");
    let output = run(&scenario, &[], &format!("PROGRAMS={folder}\n{script}"));
    let expected: String = (1..=40).map(|n| format!("position {n}\n")).collect();
    assert_eq!(output, expected);
}

fn a_mesh_of_babeld_heals_when_a_relay_fails() {
    // Over the relay there is one router between the ends, else there are two. Without -M 0 babeld prefers routes that it
    // has had for some seconds.
    let output = run(
        &two_ways(),
        &["--no-routes"],
        "for node in relay a b c d; do
             at $node babeld -M 0 -I $node.pid -S $node.state \\
                 -C 'interface air0 type wireless hello-interval 0.2 update-interval 1' air0 > /dev/null 2>&1 &
         done
         reaches() { at a ping -c 1 -W 1 $HOPLINE_D | grep ttl=$1; }
         until_ok reaches 63; echo over the relay
         at relay ip link set air0 down
         until_ok reaches 62; echo over the others",
    );
    assert_eq!(output, "over the relay\nover the others\n");
}

fn a_wireguard_tunnel_crosses_three_hops() {
    let output = run(
        CHAIN,
        &[],
        "umask 077
         for node in n0 n3; do
             wg genkey > $node.key; wg pubkey < $node.key > $node.pub
         done
         tunnel() { # NODE INTERFACE ADDRESS, PEER's node and address
             at $1 env WG_PROCESS_FOREGROUND=1 wireguard-go $2 > /dev/null 2>&1 &
             until_ok at $1 wg show $2
             at $1 wg set $2 private-key $1.key listen-port 51820 peer $(cat $4.pub) \\
                 allowed-ips 192.168.9.0/24 endpoint $5:51820
             at $1 ip address add $3/24 dev $2; at $1 ip link set $2 up
         }
         tunnel n0 hop-$$-0 192.168.9.1 n3 $HOPLINE_N3
         tunnel n3 hop-$$-3 192.168.9.2 n0 $HOPLINE_N0
         until_ok at n0 ping -c 1 -W 2 192.168.9.2
         at n0 ping -c 1 -W 2 192.168.9.2; at n3 wg show hop-$$-3 latest-handshakes",
    );
    assert!(output.contains("from 192.168.9.2: icmp_seq=1 ttl=64"), "{output}");
    let handshake = output.lines().last().unwrap().split('\t').nth(1).unwrap();
    assert!(handshake.parse::<u64>().unwrap() > 0, "{output}");
}

fn a_file_is_sent_and_received_over_three_hops() {
    let output = run(
        FAST_CHAIN,
        &[],
        "umask 077; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > secret
         head -c 300000 /dev/urandom > file
         at n3 hopline recv -o in --psk secret 2> /dev/null &
         at n0 hopline send file $HOPLINE_N3 --psk secret 2> /dev/null
         cmp file in/file && echo same",
    );
    assert!(output.ends_with("same\n"), "{output}");
}

/// Returns the commands that write the key and the configurations of two gateways. `exit`: variable with the address of the exit;
/// `source`: key of the entrance that says where connections come from.
fn gateways(exit: &str, source: &str) -> String {
    format!(
        "umask 077; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > link.key
         printf '%s\\n' 'name = \"entrance\"' \"state_dir = '$dir/entrance'\" '[[proxy]]' 'kind = \"gateway\"' \\
             \"exit = '${exit}:7172'\" 'identity = \"a\"' 'key_file = \"link.key\"' 'transport = \"tpa-wide\"' \\
             '{source}' > entrance.toml
         printf '%s\\n' 'name = \"exit\"' \"state_dir = '$dir/exit'\" '[[proxy]]' 'kind = \"gateway-exit\"' \\
             'peers = [\"a = link.key\"]' 'transport = \"tpa-wide\"' \"allowed = ['${exit} 1-65535']\" > exit.toml\n"
    )
}

fn a_pair_of_gateways_carries_a_download() {
    let output = run(
        CHAIN,
        &[],
        &(gateways("HOPLINE_N3", "socks = \"127.0.0.1:1080\"")
            + "head -c 50000 /dev/urandom > file
         at n3 python3 -m http.server 80 > /dev/null 2>&1 &
         at n3 hopline proxy run exit.toml 2> /dev/null &
         at n0 hopline proxy run entrance.toml 2> /dev/null &
         until_ok at n0 curl --silent --fail --max-time 10 --proxy socks5h://127.0.0.1:1080 --output copy \\
             http://$HOPLINE_N3/file
         cmp file copy
         carried() { at n0 hopline proxy status entrance.toml | grep 'tpa_connections  *[1-9]'; }
         until_ok carried; echo carried"),
    );
    assert_eq!(output, "carried\n");
}

fn snoop_at_a_base_station_repairs_losses_of_its_radio() {
    let output = run(
        &lossy_radio(),
        &[],
        "head -c 500000 /dev/urandom > file
         at server python3 -m http.server 80 > /dev/null 2>&1 &
         printf '%s\\n' \"state_dir = '$dir/state'\" '[[proxy]]' 'kind = \"snoop\"' 'interface = \"air0\"' > snoop.toml
         at base hopline proxy run snoop.toml 2> /dev/null &
         running() { at base hopline proxy status snoop.toml | grep running; }
         until_ok running
         until_ok at mobile curl --silent --fail --max-time 20 --output copy http://$HOPLINE_SERVER/file
         cmp file copy
         repaired() { at base hopline proxy status snoop.toml | grep 'local_retransmissions  *[1-9]'; }
         until_ok repaired
         at base hopline proxy status snoop.toml | grep -o 'one_sided_packets  *[0-9]*' | tr -s ' '",
    );
    assert_eq!(output, "one_sided_packets 0\n");
}

fn a_gateway_at_a_base_station_diverts_connections_that_come_by_its_wire() {
    let output = run(
        &lossy_radio(),
        &[],
        &(gateways("HOPLINE_MOBILE", "divert = \"wire0\"")
            + "head -c 200000 /dev/urandom > file
         at mobile python3 -m http.server 80 > /dev/null 2>&1 &
         at mobile hopline proxy run exit.toml 2> /dev/null &
         at base hopline proxy run entrance.toml 2> /dev/null &
         running() { at base hopline proxy status entrance.toml | grep running; }
         until_ok running
         until_ok at server curl --silent --fail --max-time 20 --output copy http://$HOPLINE_MOBILE/file
         cmp file copy
         carried() { at base hopline proxy status entrance.toml | grep 'tpa_connections  *[1-9]'; }
         until_ok carried; echo carried"),
    );
    assert_eq!(output, "carried\n");
}

/// Client, sim and server with the addresses that quic-interop-runner gives them. The namespace of the script is that of sim.
const QUIC_INTEROP: &str = "\
set -e; dir=$(mktemp -d); cd $dir
trap 'set +e; kill $sim $recv $client $server 2> /dev/null; wait; rm -rf $dir' EXIT
tries() { tries=0; until \"$@\" > /dev/null 2>&1; do tries=$((tries + 1)); test $tries -lt 200 || return 1; sleep 0.1; done; }
unshare --net sleep 100 & client=$!
unshare --net sleep 100 & server=$!
moved() { test $(readlink /proc/$1/ns/net) != $(readlink /proc/self/ns/net); }
tries moved $client; tries moved $server
ip link add eth0 type veth peer name eth0 netns $client
ip link add eth1 type veth peer name eth0 netns $server
side() { # PID, interface here, and the number of its network
    for address in 193.167.$3.2/24 fd00:cafe:cafe:$3::2/64; do ip address add $address dev $2; done
    ip link set $2 up
    in=\"nsenter --net=/proc/$1/ns/net\"
    echo 0 | $in tee /proc/sys/net/ipv6/conf/eth0/accept_dad > /dev/null
    for address in 193.167.$3.100/24 fd00:cafe:cafe:$3::100/64; do $in ip address add $address dev eth0; done
    $in ip link set eth0 up
    $in ip route add 193.167.0.0/16 via 193.167.$3.2
    $in ip -6 route add fd00:cafe:cafe::/48 via fd00:cafe:cafe:$3::2
}
side $client eth0 0; side $server eth1 100
LOGS=$dir $SIM $SCENARIO n0 n3 2> said & sim=$!
at_client=\"nsenter --net=/proc/$client/ns/net\"
for address in 193.167.100.100 fd00:cafe:cafe:100::100; do
    tries $at_client ping -c 1 -W 1 $address; $at_client ping -n -c 1 -W 5 $address
done
umask 077; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > secret; head -c 30000 /dev/urandom > file
nsenter --net=/proc/$server/ns/net $HOPLINE recv -o in --psk secret 2> /dev/null & recv=$!
$at_client $HOPLINE send file 193.167.100.100 --psk secret > /dev/null 2>&1
cmp file in/file; kill $recv; kill $sim; wait $sim || true; tail -n 1 said
";

fn the_sim_of_quic_interop_joins_its_two_networks() {
    let of_hopline = emulate(CHAIN, &[], "");
    let scenario = of_hopline.get_args().nth(1).unwrap();
    let hopline = Path::new(env!("CARGO_BIN_EXE_hopline"));
    let sim = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/quic-interop/sim");
    let path = std::env::join_paths(
        std::iter::once(hopline.parent().unwrap().to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "timeout", "100", "sh", "-c", QUIC_INTEROP]);
    unshare.env("SIM", sim).env("SCENARIO", scenario).env("HOPLINE", hopline).env("PATH", path.unwrap());
    let output = printed(&unshare.output().unwrap());
    for answer in
        ["from 193.167.100.100: icmp_seq=1 ttl=60", "from fd00:cafe:cafe:100::100: icmp_seq=1 ttl=60"]
    {
        assert!(output.contains(answer), "{output}");
    }
    let verdict = output.lines().last().unwrap();
    assert!(verdict.contains("% of events more than 1 ms late"), "{output}");
}
