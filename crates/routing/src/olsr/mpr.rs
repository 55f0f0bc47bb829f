//! Selection of multipoint relays (RFC 3626 §8.3.1).

use core::cmp::Reverse;
use hopline_wire::olsr::Willingness;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// A symmetric neighbour and the nodes that it reaches.
#[derive(Clone, Debug)]
struct Candidate {
    address: Ipv4Addr,
    willingness: Willingness,
    /// The nodes of N2 that it reaches, in order.
    reaches: Vec<Ipv4Addr>,
}

/// Selects a few neighbours that together reach every node two hops away. `neighbours`: N; `two_hops`: pairs of a neighbour
/// and a node it reaches, in order.
pub(super) fn select_mprs(
    own: Ipv4Addr,
    neighbours: &BTreeMap<Ipv4Addr, Willingness>,
    two_hops: impl Iterator<Item = (Ipv4Addr, Ipv4Addr)>,
) -> BTreeSet<Ipv4Addr> {
    let candidates = candidates(own, neighbours, two_hops);
    let mut selection = MprSelection::new(&candidates);
    selection.add_always_willing();
    selection.add_sole_providers();
    selection.add_best();
    selection.drop_redundant();
    selection.mprs.into_iter().map(|at| candidates[at].address).collect()
}

/// Returns the neighbours that carry traffic, with N2 and D(y); both exclude N and the node itself.
fn candidates(
    own: Ipv4Addr,
    neighbours: &BTreeMap<Ipv4Addr, Willingness>,
    two_hops: impl Iterator<Item = (Ipv4Addr, Ipv4Addr)>,
) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = neighbours
        .iter()
        .filter(|(_, willingness)| **willingness != Willingness::NEVER)
        .map(|(&address, &willingness)| Candidate { address, willingness, reaches: Vec::new() })
        .collect();
    for (neighbour, far) in two_hops.filter(|(_, far)| *far != own && !neighbours.contains_key(far)) {
        if let Ok(at) = candidates.binary_search_by_key(&neighbour, |candidate| candidate.address) {
            candidates[at].reaches.push(far);
        }
    }
    candidates
}

struct MprSelection<'a> {
    candidates: &'a [Candidate],
    mprs: BTreeSet<usize>,
    /// Number of relays that reach each node of N2.
    covered: BTreeMap<Ipv4Addr, u32>,
}

impl<'a> MprSelection<'a> {
    fn new(candidates: &'a [Candidate]) -> Self {
        let covered =
            candidates.iter().flat_map(|candidate| &candidate.reaches).map(|far| (*far, 0)).collect();
        Self { candidates, mprs: BTreeSet::new(), covered }
    }

    fn add(&mut self, at: usize) {
        if self.mprs.insert(at) {
            for far in &self.candidates[at].reaches {
                *self.covered.entry(*far).or_default() += 1;
            }
        }
    }

    /// Step 1.
    fn add_always_willing(&mut self) {
        for at in 0..self.candidates.len() {
            if self.candidates[at].willingness == Willingness::ALWAYS {
                self.add(at);
            }
        }
    }

    /// Step 3: takes the neighbours that alone reach a node.
    fn add_sole_providers(&mut self) {
        let mut reached_by: BTreeMap<Ipv4Addr, (u32, usize)> = BTreeMap::new();
        for (at, candidate) in self.candidates.iter().enumerate() {
            for far in &candidate.reaches {
                reached_by.entry(*far).and_modify(|(count, _)| *count += 1).or_insert((1, at));
            }
        }
        for (_, at) in reached_by.into_values().filter(|(count, _)| *count == 1) {
            self.add(at);
        }
    }

    /// Step 4: takes the most willing of the neighbours that reach a new node; of these the one that reaches most nodes,
    /// then the one with the highest degree. The RFC leaves the rest open: the lowest address.
    fn add_best(&mut self) {
        while let Some(best) = (0..self.candidates.len()).filter(|at| self.gain(*at) > 0).max_by_key(|at| {
            let candidate = &self.candidates[*at];
            (candidate.willingness, self.gain(*at), candidate.reaches.len(), Reverse(*at))
        }) {
            self.add(best);
        }
    }

    /// Step 5: drops relays without which every node is still reached, the least willing first.
    fn drop_redundant(&mut self) {
        let mut order: Vec<usize> = self.mprs.iter().copied().collect();
        order.sort_by_key(|at| (self.candidates[*at].willingness, Reverse(*at)));
        for at in order {
            let candidate = &self.candidates[at];
            let spare = candidate.reaches.iter().all(|far| self.covered[far] > 1);
            if spare && candidate.willingness < Willingness::ALWAYS {
                self.mprs.remove(&at);
                for far in &candidate.reaches {
                    *self.covered.entry(*far).or_default() -= 1;
                }
            }
        }
    }

    /// Returns the number of nodes that `at` reaches and no relay does.
    fn gain(&self, at: usize) -> usize {
        self.candidates[at].reaches.iter().filter(|far| self.covered[*far] == 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::NodeId;
    use proptest::prelude::*;

    fn n(index: u32) -> Ipv4Addr {
        NodeId(index).ipv4()
    }

    /// Returns the relays of node 0 if its neighbours have this willingness and reach these nodes.
    fn mprs_of_node_0(neighbours: &[(u32, u8, &[u32])]) -> Vec<u32> {
        let willing =
            neighbours.iter().map(|(node, level, _)| (n(*node), Willingness::new(*level))).collect();
        let pairs: BTreeSet<_> =
            neighbours.iter().flat_map(|(node, _, far)| far.iter().map(|far| (n(*node), n(*far)))).collect();
        let relays = select_mprs(n(0), &willing, pairs.into_iter());
        relays.into_iter().map(|address| NodeId::from_ipv4(address).unwrap().0).collect()
    }

    #[test]
    fn without_two_hop_neighbours_there_is_no_mpr() {
        assert!(mprs_of_node_0(&[]).is_empty());
        assert!(mprs_of_node_0(&[(1, 3, &[]), (2, 3, &[])]).is_empty());
        // They reach the node itself and each other only.
        assert!(mprs_of_node_0(&[(1, 3, &[0, 2]), (2, 3, &[0, 1])]).is_empty());
    }

    #[test]
    fn a_sole_provider_is_an_mpr() {
        assert_eq!(mprs_of_node_0(&[(1, 3, &[11, 12]), (2, 3, &[12, 13]), (3, 3, &[12])]), [1, 2]);
    }

    #[test]
    fn willingness_precedes_reachability() {
        assert_eq!(mprs_of_node_0(&[(1, 3, &[11, 12, 13]), (2, 6, &[11, 12, 13])]), [2]);
        // 2 is taken first, then 1 for the sake of 12, and that makes 2 redundant.
        assert_eq!(mprs_of_node_0(&[(1, 3, &[11, 12]), (2, 6, &[11]), (3, 3, &[12])]), [1]);
        assert_eq!(mprs_of_node_0(&[(1, 3, &[11, 12]), (2, 6, &[11, 13]), (3, 3, &[12, 13])]), [1, 2]);
    }

    #[test]
    fn ties_are_broken_by_reachability_degree_and_address() {
        assert_eq!(mprs_of_node_0(&[(1, 3, &[11, 12]), (2, 3, &[11, 12, 13, 14]), (3, 3, &[13, 14])]), [2]);
        // Node 1 is indispensable for 15 and covers 11; 2 and 3 add 12, and 3 has the higher degree.
        assert_eq!(mprs_of_node_0(&[(1, 3, &[11, 15]), (2, 3, &[12]), (3, 3, &[11, 12])]), [1, 3]);
        assert_eq!(mprs_of_node_0(&[(5, 3, &[11]), (4, 3, &[11])]), [4]);
    }

    #[test]
    fn will_always_and_will_never_are_respected() {
        assert_eq!(mprs_of_node_0(&[(1, 7, &[]), (2, 3, &[11])]), [1, 2]);
        assert!(mprs_of_node_0(&[(1, 0, &[11])]).is_empty());
        assert_eq!(mprs_of_node_0(&[(1, 0, &[11, 12, 13]), (2, 1, &[11])]), [2]);
    }

    #[test]
    fn redundant_mprs_are_dropped_unless_will_always() {
        // 3 is taken first as the one that reaches most; then 1 and 2 alone reach 14 and 15.
        let neighbours: &[(u32, u8, &[u32])] =
            &[(1, 3, &[11, 12, 14]), (2, 3, &[13, 15]), (3, 7, &[11, 12, 13])];
        assert_eq!(mprs_of_node_0(neighbours), [1, 2, 3]);
        // The most willing one reaches no node beyond those of the indispensable ones.
        let willing: &[(u32, u8, &[u32])] =
            &[(1, 3, &[11, 14]), (2, 3, &[12, 15]), (3, 6, &[11, 12, 13]), (4, 3, &[13, 16])];
        assert_eq!(mprs_of_node_0(willing), [1, 2, 4]);
    }

    proptest! {
        /// Property of §8.3: relays reach all of N2. In addition, none of them is redundant.
        #[test]
        fn mprs_cover_all_two_hop_neighbours_and_none_is_redundant(
            neighbours in prop::collection::btree_map(1u32..12, (0u8..8, prop::collection::btree_set(0u32..30, 0..12)), 0..11),
        ) {
            let willing: BTreeMap<_, _> =
                neighbours.iter().map(|(node, (level, _))| (n(*node), Willingness::new(*level))).collect();
            let pairs: BTreeSet<_> = neighbours
                .iter()
                .flat_map(|(node, (_, far))| far.iter().map(|far| (n(*node), n(*far))))
                .collect();
            let relays = select_mprs(n(0), &willing, pairs.iter().copied());
            let reached = |relays: &BTreeSet<Ipv4Addr>| -> BTreeSet<Ipv4Addr> {
                let far = pairs.iter().filter(|(near, far)| {
                    relays.contains(near) && *far != n(0) && !willing.contains_key(far)
                });
                far.map(|(_, far)| *far).collect()
            };
            let able = willing.iter().filter(|(_, level)| **level != Willingness::NEVER).map(|(node, _)| *node).collect();
            prop_assert!(relays.is_subset(&able));
            prop_assert_eq!(reached(&relays), reached(&able));
            for relay in relays.iter().filter(|relay| willing[*relay] != Willingness::ALWAYS) {
                let others = relays.iter().copied().filter(|other| other != relay).collect();
                prop_assert_ne!(reached(&others), reached(&able), "{} is spare", relay);
            }
        }
    }
}
