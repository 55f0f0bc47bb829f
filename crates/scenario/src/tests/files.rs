//! Scenarios that name other files, and what is wrong in those.

use super::*;
use std::fs;
use tempfile::TempDir;

/// A folder with `scenario.toml` and other files.
pub(super) fn folder(scenario: &str, files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("scenario.toml"), scenario).unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

pub(super) fn load(folder: &TempDir) -> Result<Spec, Problems> {
    Scenario::load(&folder.path().join("scenario.toml"), &[])?.spec(1)
}

/// The problems, with the name of the folder taken away.
pub(super) fn problems(folder: &TempDir) -> String {
    let text = load(folder).expect_err("this is wrong").to_string();
    text.replace(&format!("{}/", folder.path().display()), "")
}

const MOVING: &str = "duration_s = 10\n[radio]\n[nodes]\nlayout = \"movements\"\n\
    [mobility]\nmodel = \"ns2\"\nfile = \"m\"\n[[flow]]\nsrc = \"n0\"\ndst = \"n1\"\n";
const MOVEMENTS: &str = "$node_(0) set X_ 1.0\n$node_(0) set Y_ 2.0\n$node_(1) set X_ 3.0\n$node_(1) set Y_ 4.0\n\
    $ns_ at 2.0 \"$node_(1) setdest 3.0 14.0 1.0\"\n";
const LISTED: &str = "duration_s = 10\n[radio]\n[nodes]\nlayout = \"file\"\nfile = \"nodes.csv\"\n\
    [flows]\nfile = \"flows.csv\"\n";

#[test]
fn a_scenario_is_named_after_its_file_or_folder_by_default() {
    let folder = folder(CHAIN, &[("bm.toml", CHAIN)]);
    let of_folder = folder.path().file_name().unwrap().to_str().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    let name = |path: &str| Scenario::load(&folder.path().join(path), &[]).unwrap().name();
    for [path, expected] in [
        ["scenario.toml", of_folder],
        ["./scenario.toml", of_folder],
        ["sub/../scenario.toml", of_folder],
        ["bm.toml", "bm"],
        ["./bm.toml", "bm"],
        ["sub/../bm.toml", "bm"],
    ] {
        assert_eq!(name(path), expected, "{path}");
    }
    let scenario = Scenario::load(&folder.path().join("scenario.toml"), &[]).unwrap();
    assert_eq!(scenario.with(&[Setting::parse("--set", "name=x").unwrap()]).unwrap().name(), "x");
}

#[test]
fn a_missing_scenario_is_named() {
    let error = Scenario::load(Path::new("no/such.toml"), &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no/such.toml: there is no such file (check the path; it is relative to where you are)"
    );
}

#[test]
fn a_scenario_that_is_not_text_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("scenario.toml"), [b'a', 0xff, 0xfe]).unwrap();
    assert!(
        problems(&folder).starts_with("scenario.toml: not UTF-8 text at byte 1"),
        "{}",
        problems(&folder)
    );
}

#[test]
fn a_folder_is_not_a_scenario() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Scenario::load(folder.path(), &[]).unwrap_err().to_string().contains("directory"));
}

#[test]
fn a_movement_file_defines_positions_and_movement() {
    let spec = load(&folder(MOVING, &[("m", MOVEMENTS)])).unwrap();
    assert_eq!(spec.nodes.len(), 2);
    let y = |second| spec.nodes[1].trajectory.position_at(Instant::from_secs(second)).y_m;
    assert_eq!((y(0), y(2), y(7)), (4.0, 4.0, 9.0));
}

#[test]
fn a_malformed_line_of_a_movement_file_is_reported_there() {
    let broken = MOVEMENTS.replace("3.0 14.0 1.0", "3.0 north 1.0");
    let text = problems(&folder(MOVING, &[("m", &broken)]));
    assert!(text.starts_with("m:5:"), "{text}");
    assert!(text.contains("north"), "{text}");
}

#[test]
fn a_movement_file_with_too_many_nodes_is_reported_at_the_line() {
    let scenario = MOVING.replace("\"movements\"", "\"chain\"\ncount = 1\nspacing_m = 1");
    let text = problems(&folder(&scenario, &[("m", MOVEMENTS)]));
    assert!(text.starts_with("m:3:") && text.contains("there is no node 1"), "{text}");
}

#[test]
fn a_movement_file_with_too_few_nodes_is_rejected() {
    let scenario = MOVING.replace("\"movements\"", "\"chain\"\ncount = 3\nspacing_m = 1");
    let text = problems(&folder(&scenario, &[("m", MOVEMENTS)]));
    assert!(text.starts_with("m:5:") && text.contains("node 2, `n2`, is not placed"), "{text}");
}

#[test]
fn a_missing_movement_file_is_reported_at_its_key() {
    let text = problems(&folder(MOVING, &[]));
    assert_eq!(
        text,
        "scenario.toml:7:8: m: there is no such file (file names are relative to the folder of the scenario)"
    );
}

/// `MOVING` with another model.
fn moving(model: &str) -> String {
    MOVING.replace("\"ns2\"", &format!("\"{model}\""))
}

const STREET: &str = "<fcd-export><timestep time=\"0\">\n<vehicle id=\"car\" x=\"1\" y=\"0\"/>\n\
    <vehicle id=\"bus\" x=\"2\" y=\"0\"/></timestep>\n<timestep time=\"1\">\n<vehicle id=\"car\" x=\"11\" y=\"0\"/>\n\
    </timestep></fcd-export>";

fn names_of(spec: &Spec) -> Vec<&str> {
    spec.nodes.iter().map(|node| node.name.as_str()).collect()
}

fn x_at(spec: &Spec, node: usize, ms: u64) -> f64 {
    spec.nodes[node].trajectory.position_at(Instant::from_millis(ms)).x_m
}

#[test]
fn vehicles_of_sumo_are_nodes_named_by_their_ids() {
    let scenario = moving("sumo").replace("n0", "car").replace("n1", "bus");
    let spec = load(&folder(&scenario, &[("m", STREET)])).unwrap();
    assert_eq!(names_of(&spec), ["car", "bus"]);
    assert_eq!([x_at(&spec, 0, 500), x_at(&spec, 0, 9000), x_at(&spec, 1, 9000)], [6.0, 11.0, 2.0]);
}

#[test]
fn nodes_of_bonnmotion_are_numbered() {
    let spec = load(&folder(&moving("bonnmotion"), &[("m", "0 1 0 10 11 0\n0 5 0\n")])).unwrap();
    assert_eq!((names_of(&spec), x_at(&spec, 0, 5000)), (vec!["n0", "n1"], 6.0));
}

#[test]
fn csv_numbers_are_node_numbers() {
    let text = "node,time_s,x_m,y_m\n1,0,5,0\n0,0,1,0\n0,10,11,0\n";
    let spec = load(&folder(&moving("csv"), &[("m", text)])).unwrap();
    assert_eq!((names_of(&spec), x_at(&spec, 0, 5000)), (vec!["n0", "n1"], 6.0));
}

#[test]
fn nodes_missing_in_the_file_are_stationary() {
    let scenario = moving("sumo").replace("n0", "car").replace("n1", "mast")
        + "[[node]]\nname = \"mast\"\nx_m = 7\n[[node]]\nname = \"host\"\ninterface = \"wired\"\n";
    let spec = load(&folder(&scenario, &[("m", STREET)])).unwrap();
    assert_eq!((names_of(&spec), x_at(&spec, 2, 9000)), (vec!["car", "bus", "mast", "host"], 7.0));
    let listed = "duration_s = 10\n[radio]\n[mobility]\nmodel = \"sumo\"\nfile = \"m\"\n\
        [[node]]\nname = \"mast\"\nx_m = 7\n[[node]]\nname = \"bus\"\n[[node]]\nname = \"car\"\n\
        [[flow]]\nsrc = \"car\"\ndst = \"mast\"\n";
    let spec = load(&folder(listed, &[("m", STREET)])).unwrap();
    assert_eq!(names_of(&spec), ["mast", "bus", "car"]);
    assert_eq!([x_at(&spec, 0, 500), x_at(&spec, 1, 500), x_at(&spec, 2, 500)], [7.0, 2.0, 6.0]);
}

#[test]
fn unknown_names_are_matched_in_order() {
    let scenario = moving("sumo").replace("\"movements\"", "\"chain\"\ncount = 2\nspacing_m = 1");
    let spec = load(&folder(&scenario, &[("m", STREET)])).unwrap();
    assert_eq!((names_of(&spec), x_at(&spec, 0, 500)), (vec!["n0", "n1"], 6.0));
    let text = problems(&folder(&scenario.replace("count = 2", "count = 1"), &[("m", STREET)]));
    assert!(text.starts_with("m:3:14: there is no node for `bus`"), "{text}");
    let text = problems(&folder(&scenario.replace("count = 2", "count = 3"), &[("m", STREET)]));
    assert!(text.starts_with("m:6:25: node 2, `n2`, is not placed"), "{text}");
}

#[test]
fn a_misspelt_name_is_reported_in_the_file() {
    let scenario = "duration_s = 10\n[radio]\n[mobility]\nmodel = \"sumo\"\nfile = \"m\"\n\
        [[node]]\nname = \"bus\"\n[[node]]\nname = \"cart\"\n[[flow]]\nsrc = \"bus\"\ndst = \"cart\"\n";
    let text = problems(&folder(scenario, &[("m", STREET)]));
    assert_eq!(text, "m:2:14: there is no node `car` (did you mean `cart`? the nodes are bus, cart)");
    let wired = scenario.replace("\"cart\"\n[[flow]]", "\"car\"\ninterface = \"wired\"\n[[flow]]");
    let text = problems(&folder(&wired.replace("cart", "car"), &[("m", STREET)]));
    assert!(text.starts_with("m:2:14: `car` is wired: it does not move"), "{text}");
}

#[test]
fn errors_of_every_format_are_reported_in_the_file() {
    for (model, text, place) in [
        ("bonnmotion", "0 0 0\n0 1 north\n", "m:2:5: `north`"),
        ("sumo", "<fcd-export>\n<timestep time=\"x\"/></fcd-export>", "m:2:17: `x`"),
        ("csv", "node,time_s,x_m,y_m\nn0,0,0\n", "m:2:1: 4 columns"),
        ("csv", "", "m:1:1: an empty file"),
    ] {
        let text = problems(&folder(&moving(model), &[("m", text)]));
        assert!(text.starts_with(place), "{text}");
    }
}

#[test]
fn an_endless_or_huge_movement_file_is_rejected_unread() {
    let text = problems(&folder(&MOVING.replace("\"m\"", "\"/dev/zero\""), &[]));
    assert!(text.starts_with("scenario.toml:7:8: /dev/zero: not a regular file"), "{text}");
    let folder = folder(MOVING, &[("m", "")]);
    let file = fs::OpenOptions::new().write(true).open(folder.path().join("m")).unwrap();
    file.set_len((1 << 30) + 1).unwrap();
    assert!(problems(&folder).starts_with("scenario.toml:7:8: m: larger than 1024 MiB"));
}

#[test]
fn a_movement_file_is_read_once_for_all_variants() {
    let folder = folder(MOVING, &[("m", MOVEMENTS)]);
    let scenario = Scenario::load(&folder.path().join("scenario.toml"), &[]).unwrap();
    fs::remove_file(folder.path().join("m")).unwrap();
    assert!(scenario.with(&[Setting::parse("--set", "tcp.window=3").unwrap()]).is_ok());
    let other = scenario.with(&[Setting::parse("--set", "mobility.model=csv").unwrap()]);
    assert!(other.unwrap_err().to_string().contains("there is no such file"));
}

#[test]
fn nodes_and_flows_may_come_from_csv_with_keys_as_header() {
    let files = [
        ("nodes.csv", "x_m, y_m\n# the first\n0, 0\n\n100.5,-3\r\n7,8\n"),
        ("flows.csv", "kind,src,dst,start_s,rate_kbps\nbulk,n0,n1,2.5,\ncbr,n2,n0,,8\n"),
    ];
    let spec = load(&folder(LISTED, &files)).unwrap();
    assert_eq!((spec.nodes.len(), start(&spec, 1)), (3, (100.5, -3.0)));
    assert_eq!(spec.flows[0].start, Instant::from_millis(2500));
    assert!(matches!(spec.flows[1].traffic, Traffic::Cbr { .. }));
}

#[test]
fn an_error_in_a_csv_file_is_reported_at_its_cell() {
    let wrong =
        |nodes: &str, flows: &str| problems(&folder(LISTED, &[("nodes.csv", nodes), ("flows.csv", flows)]));
    let (nodes, flows) = ("x_m,y_m\n0,0\n1,1\n", "src,dst\nn0,n1\n");
    assert_eq!(wrong("x_m,z_m\n", flows), "nodes.csv:1:5: unknown column `z_m` (did you mean `x_m`?)");
    assert_eq!(
        wrong("x_m,y_m,x_m\n0,0,1\n", flows),
        "nodes.csv:1:9: a second column `x_m` (remove one of the two)"
    );
    assert_eq!(
        wrong("x_m,y_m\n0,0\n1\n", flows),
        "nodes.csv:3:1: 2 columns in the header, 1 here (every line has one value for each column of the header)"
    );
    assert!(wrong("x_m,y_m\n0,zero\n", flows).starts_with("nodes.csv:2:3: `node.0.y_m` takes a number"));
    assert!(wrong("x_m,y_m\n0,1e99\n", flows).starts_with("nodes.csv:2:3: `node.0.y_m` = 1000000"));
    assert_eq!(
        wrong(nodes, "src,dst\nn0,n9\n"),
        "flows.csv:2:4: there is no node `n9` (did you mean `n0`? the nodes are n0, n1)"
    );
    assert!(wrong(nodes, "src\nn0\n").starts_with("flows.csv:2:1: a flow without `dst`"));
    assert!(wrong("", flows).starts_with("nodes.csv:1:1: an empty file"));
    let degrees = "x_m,y_m\n13.4050,52.5200\n13.4061,52.5203\n";
    assert!(wrong(degrees, flows).starts_with("nodes.csv:2:1: positions look like longitudes and latitudes"));
}

#[test]
fn spreadsheet_files_may_have_a_byte_order_mark_and_semicolons() {
    let nodes = "\u{feff}name;x_m;y_m\r\na;0;0\r\nb;200.5;0\r\n";
    let flows = "\u{feff}src;dst;rate_kbps;kind\r\na;b;64;cbr\r\n";
    let spec = load(&folder(LISTED, &[("nodes.csv", nodes), ("flows.csv", flows)])).unwrap();
    assert_eq!(spec.nodes[1].name, "b");
    assert_eq!(spec.nodes[1].trajectory.position_at(Instant::ZERO).x_m, 200.5);
    assert!(matches!(spec.flows[0].traffic, Traffic::Cbr { .. }));
}

#[test]
fn an_error_after_a_byte_order_mark_has_its_position() {
    let of_nodes =
        |nodes: &str| problems(&folder(LISTED, &[("nodes.csv", nodes), ("flows.csv", "src,dst\n")]));
    let unknown = of_nodes("\u{feff}nmae,x_m\na,0\n");
    assert_eq!(unknown, "nodes.csv:1:1: unknown column `nmae` (did you mean `name`?)");
    assert!(of_nodes("\u{feff}name,y_n\na,0\n").starts_with("nodes.csv:1:6: "));
    assert!(
        of_nodes("\u{feff}name;x_m\na;0;1\n").starts_with("nodes.csv:2:1: 2 columns in the header, 3 here")
    );
    let comma = of_nodes("name;x_m\na;12,5\n");
    assert!(
        comma.starts_with("nodes.csv:2:3: ") && comma.ends_with("(decimals stand behind a point: 12.5)"),
        "{comma}"
    );
    assert_eq!(
        of_nodes("\u{feff}"),
        "nodes.csv:1:1: an empty file (its first line names columns: name,x_m,y_m,interface,channels,gateway,fixed,waypoints)"
    );
}

#[test]
fn a_scenario_with_a_byte_order_mark_is_parsed_and_its_errors_have_their_position() {
    let marked = |text: &str| folder(&format!("\u{feff}{text}"), &[]);
    assert!(load(&marked(CHAIN)).is_ok());
    let wrong = problems(&marked(&format!("durration_s = 1\n{CHAIN}")));
    assert!(wrong.starts_with("scenario.toml:1:1: unknown key `durration_s`"), "{wrong}");
    let wrong = problems(&marked("duration_s = 1\nname = = 2\n"));
    assert!(wrong.starts_with("scenario.toml:2:8: invalid TOML"), "{wrong}");
}

/// A flow of this recording.
fn recorded(flow: &str, csv: &str) -> TempDir {
    let text = CHAIN.to_owned() + "kind = \"recorded\"\n" + flow;
    folder(&text, &[("trace.csv", csv)])
}

#[test]
fn recorded_traffic_uses_datagrams_or_the_transport_of_the_flow() {
    let csv = "time_s,bytes\n0.5,1000\n0,70000\n";
    let wrong = problems(&recorded("file = \"trace.csv\"\n", csv));
    assert!(wrong.starts_with("trace.csv:3:3: more bytes than a datagram has"), "{wrong}");
    let over = load(&recorded("file = \"trace.csv\"\ntransport = \"tcp-sack\"\n", csv)).unwrap();
    let Traffic::Recorded { over: Some(_), packets } = &over.flows[0].traffic else { panic!("{over:?}") };
    assert_eq!(packets.iter().map(|packet| packet.bytes).collect::<Vec<_>>(), [70_000, 1000]);
    assert_eq!(over.flows[0].labels.transport, "tcp-sack");
    let plain = load(&recorded("file = \"trace.csv\"\n", "time_s,bytes\n0,100\n")).unwrap();
    assert!(matches!(plain.flows[0].traffic, Traffic::Recorded { over: None, .. }));
    assert_eq!(plain.flows[0].labels.transport, "udp-recorded");
}

#[test]
fn a_recording_must_exist_and_only_recorded_flows_take_one() {
    let csv = "time_s,bytes\n0,100\n";
    assert!(problems(&recorded("", csv)).contains("a recorded flow without `file`"));
    let missing = problems(&recorded("file = \"trace.cvs\"\n", csv));
    assert!(missing.starts_with("scenario.toml:11:8: trace.cvs: there is no such file"), "{missing}");
    let tuned = problems(&recorded("file = \"trace.csv\"\ntcp = { window = 3 }\n", csv));
    assert!(tuned.contains("`tcp` of a recorded flow without `transport`"), "{tuned}");
    let bulk = problems(&folder(&(CHAIN.to_owned() + "file = \"trace.csv\"\n"), &[("trace.csv", csv)]));
    assert!(bulk.contains("`file` is used with kind = \"recorded\", not \"bulk\""), "{bulk}");
}
