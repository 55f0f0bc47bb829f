use super::*;
use proptest::prelude::*;

fn at(x_m: f64, y_m: f64) -> Position {
    Position { x_m, y_m }
}

fn query(grid: &CellGrid, centre: Position, radius_m: f64) -> Vec<u32> {
    let mut found = vec![NodeId(99)];
    grid.within(centre, radius_m, &mut found);
    found.into_iter().map(|n| n.0).collect()
}

#[test]
fn the_circle_includes_its_edge_and_its_centre() {
    let mut grid = CellGrid::new(100.0);
    grid.place(NodeId(2), at(0.0, 0.0));
    grid.place(NodeId(1), at(250.0, 0.0));
    grid.place(NodeId(0), at(250.001, 0.0));
    assert_eq!(query(&grid, at(0.0, 0.0), 250.0), [1, 2]);
    assert_eq!(query(&grid, at(0.0, 0.0), 0.0), [2]);
    assert_eq!(query(&grid, at(0.0, 0.0), -1.0), []);
    assert_eq!(query(&grid, at(0.0, 0.0), f64::NAN), []);
}

#[test]
fn a_node_is_found_where_it_moved_and_nowhere_else() {
    let mut grid = CellGrid::new(50.0);
    grid.place(NodeId(5), at(10.0, 10.0));
    grid.place(NodeId(5), at(-400.0, -10.0));
    assert_eq!(query(&grid, at(10.0, 10.0), 100.0), []);
    assert_eq!(query(&grid, at(-400.0, 0.0), 10.0), [5]);
    assert_eq!(grid.position(NodeId(5)), Some(at(-400.0, -10.0)));
    assert_eq!(grid.len(), 1);
    grid.remove(NodeId(5));
    grid.remove(NodeId(5));
    grid.remove(NodeId(77));
    assert!(grid.is_empty());
    assert_eq!(grid.position(NodeId(5)), None);
    assert_eq!(query(&grid, at(-400.0, 0.0), 10.0), []);
}

#[test]
fn nodes_that_share_a_bucket_from_afar_are_told_apart() {
    let mut grid = CellGrid::new(1.0);
    grid.place(NodeId(0), at(0.5, 0.5));
    grid.place(NodeId(1), at(64.5, 0.5));
    grid.place(NodeId(2), at(-63.5, -63.5));
    assert_eq!(query(&grid, at(0.5, 0.5), 1.0), [0]);
    assert_eq!(query(&grid, at(0.5, 0.5), 1000.0), [0, 1, 2]);
    assert_eq!(query(&grid, at(0.5, 0.5), f64::INFINITY), [0, 1, 2]);
}

#[test]
fn absurdly_far_positions_are_kept() {
    let mut grid = CellGrid::new(1.0);
    grid.place(NodeId(0), at(1e300, -1e300));
    grid.place(NodeId(1), at(-1e300, 1e300));
    assert_eq!(query(&grid, at(1e300, -1e300), 1.0), [0]);
    assert_eq!(query(&grid, at(-1e300, 1e300), 1.0), [1]);
    assert_eq!(query(&grid, at(0.0, 0.0), 1.0), []);
}

#[test]
fn five_thousand_nodes_are_found_as_by_brute_force() {
    let mut s = hopline_core::RandomStream::global(3, 1, hopline_core::Purpose::Placement);
    let nodes: Vec<Position> = (0..5_000).map(|_| at(s.uniform(-5e3, 5e3), s.uniform(-5e3, 5e3))).collect();
    let mut grid = CellGrid::new(550.0);
    for (n, &p) in nodes.iter().enumerate() {
        grid.place(NodeId(n as u32), p);
    }
    assert_eq!(grid.len(), 5_000);
    for centre in nodes.iter().step_by(250) {
        let brute: Vec<u32> =
            (0..5_000).filter(|&n| nodes[n as usize].distance_squared_m2(*centre) <= 550.0 * 550.0).collect();
        assert!(brute.len() > 10);
        assert_eq!(query(&grid, *centre, 550.0), brute);
    }
}

#[derive(Clone, Debug)]
enum Op {
    Place(u32, f64, f64),
    Remove(u32),
    Query(f64, f64, f64),
}

fn op() -> impl Strategy<Value = Op> {
    let coordinate = -2_000.0f64..2_000.0;
    prop_oneof![
        4 => (0u32..40, coordinate.clone(), coordinate.clone()).prop_map(|(n, x, y)| Op::Place(n, x, y)),
        1 => (0u32..40).prop_map(Op::Remove),
        2 => (coordinate.clone(), coordinate, 0.0f64..3_000.0).prop_map(|(x, y, r)| Op::Query(x, y, r)),
    ]
}

proptest! {
    #[test]
    fn any_history_of_moves_answers_like_a_plain_list(
        cell in 3.0f64..700.0,
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let mut grid = CellGrid::new(cell);
        let mut list = std::collections::BTreeMap::new();
        for op in ops {
            match op {
                Op::Place(n, x, y) => {
                    grid.place(NodeId(n), at(x, y));
                    list.insert(n, at(x, y));
                }
                Op::Remove(n) => {
                    grid.remove(NodeId(n));
                    list.remove(&n);
                }
                Op::Query(x, y, r) => {
                    let near = |p: &Position| p.distance_squared_m2(at(x, y)) <= r * r;
                    let brute: Vec<u32> = list.iter().filter(|(_, p)| near(p)).map(|(&n, _)| n).collect();
                    prop_assert_eq!(query(&grid, at(x, y), r), brute);
                }
            }
            prop_assert_eq!(grid.len(), list.len());
        }
    }
}
