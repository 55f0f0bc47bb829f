//! A transfer over a link that carries so much and is so long.

use crate::wide::{Config, Endpoint};
use hopline_core::{Duration, Instant, Length, LinkId, StateMachine};
use hopline_wire::wide::Packet;
use std::collections::BTreeMap;

/// Sends so many bytes over a link of `rate` bits a second that takes `way`; acknowledgments take no time on it. `left` sees each packet that the
/// sender lets go. Returns when all have arrived.
pub(super) fn transfer(
    config: Config,
    path: (f64, Duration),
    bytes: u64,
    left: impl FnMut(Instant, &Packet<Length>),
) -> Instant {
    transfer_with_coarse_wakeups(config, path, Duration::ZERO, bytes, left)
}

/// The same between threads that run at multiples of `turn` only, as other programs fill their processors.
pub(super) fn transfer_with_coarse_wakeups(
    config: Config,
    (rate, way): (f64, Duration),
    turn: Duration,
    bytes: u64,
    mut left: impl FnMut(Instant, &Packet<Length>),
) -> Instant {
    let woken = |due: Instant| match turn.as_nanos() {
        0 => due,
        turn => Instant::from_nanos(due.as_nanos().div_ceil(turn) * turn),
    };
    let mut ends = [(); 2].map(|()| Endpoint::<Length>::new(config).expect("valid"));
    ends[1].listen().expect("new");
    ends[0].connect(Instant::ZERO).expect("new");
    ends[0].send(Instant::ZERO, Length(bytes)).expect("no limit");
    let mut under_way: BTreeMap<(Instant, u64), (usize, Packet<Length>)> = BTreeMap::new();
    let (mut now, mut busy, mut count, mut got) = (Instant::ZERO, Instant::ZERO, 0, 0);
    loop {
        for at in [0, 1] {
            while let Some(packet) = ends[at].poll_transmit(now) {
                if at == 0 {
                    left(now, &packet);
                    busy = busy.max(now) + Duration::from_secs_f64(packet.sealed_len() as f64 * 8.0 / rate);
                }
                let arrives = if at == 0 { busy } else { now } + way;
                under_way.insert((arrives, count), (1 - at, packet));
                count += 1;
            }
            while let Some(Length(len)) = ends[at].recv() {
                got += len;
            }
        }
        if got == bytes {
            return now;
        }
        let timers = ends.iter().filter_map(|end| end.poll_timeout()).map(|(at, _)| at);
        let arrival = under_way.first_key_value().map(|((at, _), _)| *at);
        now = woken(timers.chain(arrival).min().expect("something is due").max(now));
        match under_way.first_entry() {
            Some(first) if first.key().0 <= now => {
                let (to, packet) = first.remove();
                ends[to].handle_packet(now, LinkId::ONLY, packet);
            }
            _ => ends.iter_mut().for_each(|end| end.handle_timeout(now)),
        }
    }
}
