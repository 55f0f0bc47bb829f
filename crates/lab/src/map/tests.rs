//! Maps of small networks, and of the shipped scenarios.

use super::*;
use crate::Scenario;
use hopline_config::source::Source;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn map(toml: &str) -> Map {
    let source = Arc::new(Source { name: "test.toml".into(), text: toml.into() });
    let scenario = Scenario::parse(source, PathBuf::new(), &[]).unwrap();
    Map::of(&scenario.spec(1).unwrap())
}

fn shipped(name: &str) -> Map {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name).join("scenario.toml");
    Map::of(&Scenario::load(&path, &[]).unwrap().spec(1).unwrap())
}

#[test]
fn a_chain_has_its_ranges_flow_and_route() {
    let map = shipped("chain");
    let places: Vec<_> = map.nodes.iter().map(|n| (n.name.as_str(), n.path[0].x_m, n.path[0].y_m)).collect();
    assert_eq!(places[0], ("n0", 0.0, 0.0));
    assert_eq!(places[4], ("n4", 800.0, 0.0));
    assert!((map.transmission_m.unwrap() - 250.0).abs() < 0.5, "{:?}", map.transmission_m);
    assert!((map.carrier_sense_m.unwrap() - 550.0).abs() < 0.5, "{:?}", map.carrier_sense_m);
    assert_eq!(map.flows.len(), 1);
    assert_eq!(map.flows[0].route, Some(vec![0, 1, 2, 3, 4]));
    assert!(!map.is_moving() && map.notes.is_empty() && map.links.is_empty());
}

#[test]
fn ranges_are_those_of_the_data_rate() {
    let reach = |mbps: f64| {
        let map = map(&format!(
            "duration_s = 1\n[radio]\npreset = \"dot11a-ranges\"\n[mac]\ndata_rate_mbps = {mbps}\n\
             [nodes]\nlayout = \"chain\"\ncount = 2\nspacing_m = 20\n[[flow]]\nsrc = \"n0\"\ndst = \"n1\"\n"
        ));
        [map.transmission_m, map.carrier_sense_m].map(|metres| metres.expect("there is a radio").round())
    };
    assert_eq!([reach(54.0), reach(6.0)], [[52.0, 366.0], [366.0, 366.0]]);
}

#[test]
fn a_route_found_by_aodv_is_unknown() {
    assert_eq!(shipped("walk").flows[0].route, None);
}

#[test]
fn a_destination_out_of_range_has_no_route() {
    let map = map(
        "duration_s = 1\n[radio]\npreset = \"ns2-wavelan\"\n[nodes]\nlayout = \"chain\"\ncount = 2\nspacing_m = 900\n\
         [[flow]]\nsrc = \"n0\"\ndst = \"n1\"\n",
    );
    assert_eq!(map.flows[0].route, None);
}

#[test]
fn wired_nodes_without_positions_are_placed_in_a_row_along_their_links() {
    let map = shipped("wired");
    let places: Vec<_> = map.nodes.iter().map(|n| (n.path[0].x_m, n.path[0].y_m)).collect();
    assert_eq!(places, [(0.0, -100.0), (100.0, -100.0), (200.0, -100.0)]);
    assert_eq!(map.links, [MapLink { a: 0, b: 1 }, MapLink { a: 1, b: 2 }]);
    assert_eq!((map.transmission_m, map.carrier_sense_m), (None, None));
    assert_eq!(map.flows[0].route, Some(vec![0, 1, 2]));
    assert_eq!(map.notes.len(), 1);
}

#[test]
fn a_moving_node_has_the_corners_of_its_path_during_the_run() {
    let map = map(
        "duration_s = 10\n[radio]\npreset = \"ns2-wavelan\"\n[[node]]\nname = \"still\"\n[[node]]\nname = \"walker\"\n\
         [[node.waypoints]]\nat_s = 2\nx_m = 100\ny_m = 0\nspeed_mps = 5\n\
         [[flow]]\nsrc = \"still\"\ndst = \"walker\"\n",
    );
    assert_eq!(map.nodes[0].path.len(), 1);
    let walker: Vec<_> = map.nodes[1].path.iter().map(|p| (p.at_s, p.x_m)).collect();
    assert_eq!(walker, [(0.0, 0.0), (2.0, 0.0), (10.0, 40.0)]);
    assert!(map.is_moving());
}

#[test]
fn a_node_that_moves_only_after_the_run_is_stationary() {
    let map = map(
        "duration_s = 1\n[radio]\npreset = \"ns2-wavelan\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
         [[node.waypoints]]\nat_s = 2\nx_m = 100\ny_m = 0\nspeed_mps = 5\n[[flow]]\nsrc = \"a\"\ndst = \"b\"\n",
    );
    assert!(!map.is_moving());
}

#[test]
fn long_paths_are_sampled_and_that_is_noted() {
    let map = map("duration_s = 900\n[radio]\npreset = \"ns2-wavelan\"\n[routing]\nprotocol = \"aodv\"\n\
         [nodes]\nlayout = \"random\"\ncount = 500\nwidth_m = 100\nheight_m = 100\n\
         [mobility]\nmodel = \"random-waypoint-stationary\"\nmin_speed_mps = 20\nmax_speed_mps = 30\n\
         width_m = 100\nheight_m = 100\n[[flow]]\nsrc = \"n0\"\ndst = \"n1\"\n");
    let corners: usize = map.nodes.iter().map(|n| n.path.len()).sum();
    assert_eq!(corners, 16_000);
    assert_eq!(
        map.notes,
        ["Of the movement 32 positions of each node are kept, with straight lines between."]
    );
    assert!(map.nodes.iter().all(|n| n.path.windows(2).all(|w| w[0].at_s < w[1].at_s)));
}
