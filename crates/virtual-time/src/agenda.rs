//! Order of the hosts and of the simulated network in virtual time.
//!
//! Whatever is due first has its turn. At equal times the network comes before the hosts, and hosts come in the order of
//! their nodes. A host may run freely up to the time at which another one, or the network, is due.

use hopline_core::Instant;

/// Holder of the next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The network, with an event at this time.
    Network(Instant),
    /// The host of this index, at this time.
    Host(usize, Instant),
    /// Nothing will ever happen.
    Nothing,
}

/// Returns what has its turn. `network`: time of the next event of the network, [`Instant::FAR_FUTURE`] for none.
/// `hosts`: times that the hosts have requested.
pub fn next_turn(network: Instant, hosts: impl IntoIterator<Item = Option<Instant>>) -> Turn {
    let due = hosts.into_iter().enumerate().filter_map(|(index, request)| Some((request?, index)));
    match due.min() {
        Some((time, index)) if time < network => Turn::Host(index, time),
        _ if network < Instant::FAR_FUTURE => Turn::Network(network),
        _ => Turn::Nothing,
    }
}

/// Returns the time up to which host `running` may run freely.
pub fn free_until(
    network: Instant,
    hosts: impl IntoIterator<Item = Option<Instant>>,
    running: usize,
) -> Instant {
    let others = hosts.into_iter().enumerate().filter(|&(index, _)| index != running);
    others.filter_map(|(_, request)| request).fold(network, Instant::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn the_earliest_has_its_turn() {
        let hosts = [Some(at(30)), None, Some(at(20))];
        assert_eq!(next_turn(at(10), hosts), Turn::Network(at(10)));
        assert_eq!(next_turn(at(25), hosts), Turn::Host(2, at(20)));
    }

    #[test]
    fn at_equal_times_the_network_comes_first_and_then_the_first_host() {
        let hosts = [None, Some(at(20)), Some(at(20))];
        assert_eq!(next_turn(at(20), hosts), Turn::Network(at(20)));
        assert_eq!(next_turn(at(21), hosts), Turn::Host(1, at(20)));
    }

    #[test]
    fn without_requests_and_events_nothing_happens() {
        assert_eq!(next_turn(Instant::FAR_FUTURE, [None, None]), Turn::Nothing);
        assert_eq!(next_turn(Instant::FAR_FUTURE, [None, Some(at(7))]), Turn::Host(1, at(7)));
    }

    #[test]
    fn a_host_runs_freely_until_another_is_due() {
        let hosts = [Some(at(5)), Some(at(40)), Some(at(30))];
        assert_eq!(free_until(at(100), hosts, 0), at(30));
        assert_eq!(free_until(at(20), hosts, 0), at(20));
        assert_eq!(free_until(Instant::FAR_FUTURE, [Some(at(5))], 0), Instant::FAR_FUTURE);
    }
}
