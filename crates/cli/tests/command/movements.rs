//! `hopline movements`.

use super::*;
use hopline_lab::{Scenario, Spec};

fn movements(file: &Path, more: &[&str]) -> Output {
    hopline(["movements", file.to_str().unwrap()].iter().chain(more))
}

fn spec(file: &Path, run: u64) -> Spec {
    Scenario::load(file, &[]).unwrap().spec(run).unwrap()
}

/// Returns the scenario with the text `text`, and the movement file `moves` beside it.
fn reading(text: &str, moves: &str) -> Spec {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("moves"), moves).unwrap();
    std::fs::write(folder.path().join("scenario.toml"), text).unwrap();
    spec(&folder.path().join("scenario.toml"), 1)
}

const READ_BACK: &str = "duration_s = 200\n[radio]\n[nodes]\nlayout = \"movements\"\n[mobility]\nmodel = \"ns2\"\n\
    file = \"moves\"\n[[flow]]\nsrc = \"n0\"\ndst = \"n1\"\n";

#[test]
fn printed_movements_round_trip() {
    for name in ["walk", "street", "chain"] {
        let file = scenario(name);
        let (before, after) = (spec(&file, 1), reading(READ_BACK, &stdout(&movements(&file, &[]))));
        assert_eq!(before.nodes.len(), after.nodes.len());
        for (was, is) in before.nodes.iter().zip(&after.nodes) {
            for ms in (0..200_000).step_by(333) {
                let at = hopline_core::Instant::from_millis(ms);
                let apart_m = was.trajectory.position_at(at).distance_m(is.trajectory.position_at(at));
                assert!(apart_m < 1e-3, "{name}: {} at {ms} ms: {apart_m} m", was.name);
            }
        }
    }
}

#[test]
fn names_and_extent_are_in_comments() {
    let text = stdout(&movements(&scenario("street"), &[]));
    let lines: Vec<&str> = text.lines().take(5).collect();
    assert_eq!(lines[0], "# street, seed 1, run 1: 12 nodes");
    assert_eq!(lines[1], "# x from 50 to 650 m, y from 50 to 500 m");
    assert_eq!(lines[2], "# $node_(0) is car.0");
    let text = stdout(&movements(&scenario("chain"), &[]));
    assert_eq!(text.lines().nth(2), Some("# ns-2 sends nodes only to coordinates above 0"));
    assert!(!text.contains(" is n"), "{text}");
}

#[test]
fn random_movement_differs_between_runs_and_is_repeatable() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.toml");
    let text = "duration_s = 60\n[radio]\n[nodes]\nlayout = \"random\"\ncount = 4\nwidth_m = 300\nheight_m = 200\n\
        [mobility]\nmodel = \"random-waypoint\"\nmax_speed_mps = 10\npause_s = 2\n[[flow]]\nsrc = \"n0\"\ndst = \"n1\"\n";
    std::fs::write(&file, text).unwrap();
    let run = |number: &str| stdout(&movements(&file, &["--run", number]));
    assert_eq!(run("1"), run("1"));
    assert_ne!(run("1").lines().nth(3), run("2").lines().nth(3));
    assert!(run("1").contains("setdest"));
}

#[test]
fn a_file_is_written_atomically_and_replaced_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out.ns_movements");
    let target_name = target.to_str().unwrap();
    let (file, printed) = (scenario("street"), stdout(&movements(&scenario("street"), &[])));
    let written = movements(&file, &["-o", target_name]);
    assert_eq!((written.status.code(), stdout(&written).as_str()), (Some(0), ""));
    assert_eq!(std::fs::read_to_string(&target).unwrap(), printed);
    std::fs::write(&target, "mine").unwrap();
    let refused = movements(&file, &["-o", target_name]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("exists and is not overwritten"), "{}", stderr(&refused));
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "mine");
    assert_eq!(movements(&file, &["-o", target_name, "--force"]).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&target).unwrap(), printed);
    assert_eq!(names(folder.path()), ["out.ns_movements"]);
}

#[test]
fn wired_nodes_do_not_move() {
    let output = movements(&scenario("wired"), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no node is wireless"), "{}", stderr(&output));
}

/// Script that prints time, node, x and y of twenty nodes, as ns-2 moves them.
const NS2: &str = r#"
set ns_ [new Simulator]
$ns_ trace-all [open /dev/null w]
set topo [new Topography]
$topo load_flatgrid 2000 2000
set god_ [create-god 20]
$ns_ node-config -adhocRouting DumbAgent -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $topo \
    -agentTrace OFF -routerTrace OFF -macTrace OFF -movementTrace OFF
for {set i 0} {$i < 20} {incr i} { set node_($i) [$ns_ node]; $node_($i) random-motion 0 }
source [lindex $argv 0]
proc report {} {
    global ns_ node_
    for {set i 0} {$i < 20} {incr i} {
        $node_($i) log-movement
        puts "[$ns_ now] $i [$node_($i) set X_] [$node_($i) set Y_]"
    }
}
foreach t {0.5 17 60 121.5 199} { $ns_ at $t report }
$ns_ at 200 { exit 0 }
$ns_ run
"#;

#[test]
fn ns_2_moves_nodes_as_the_file_says() {
    let Ok(found) = Command::new("ns").arg("/dev/null").output() else {
        eprintln!("skipped: ns-2 is not installed (Debian package ns2)");
        return;
    };
    assert!(found.status.success(), "ns does not start");
    let folder = tempfile::tempdir().unwrap();
    let (script, moves) = (folder.path().join("s.tcl"), folder.path().join("walk.ns_movements"));
    std::fs::write(&script, NS2).unwrap();
    let file = scenario("walk");
    assert_eq!(movements(&file, &["-o", moves.to_str().unwrap()]).status.code(), Some(0));
    let output = Command::new("ns").arg(&script).arg(&moves).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let spec = spec(&file, 1);
    let mut seen = 0;
    for line in stdout(&output).lines() {
        let numbers: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [t, node, x_m, y_m] = numbers[..] else { continue };
        let at = hopline_core::Instant::from_nanos((t * 1e9).round() as u64);
        let here = spec.nodes[node as usize].trajectory.position_at(at);
        let apart_m = (here.x_m - x_m).hypot(here.y_m - y_m);
        assert!(apart_m < 1e-3, "node {node} at {t} s: {apart_m} m");
        seen += 1;
    }
    assert_eq!(seen, 5 * 20, "{}", stdout(&output));
}
