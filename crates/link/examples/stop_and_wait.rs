//! A protocol under test over an emulated link in virtual time: stop-and-wait ARQ, which sends a packet until it is
//! acknowledged. `cargo run --example stop_and_wait` prints a table; `cargo test --example stop_and_wait` runs the tests.

use hopline_core::{Duration, Instant};
use hopline_link::{CopyState, Direction, Emulation};

/// Bytes of a packet and of an acknowledgment, headers included.
const PACKET: usize = 1500;
const ACK: usize = 40;

/// Result of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    took: Duration,
    sent: u32,
}

/// Returns the first arrival of an undamaged copy.
fn arrival(link: &mut Direction, now: Instant, bytes: usize) -> Option<Instant> {
    let copies = link.transmit(now, bytes).into_iter().flatten();
    copies.filter(|(_, fate)| *fate == CopyState::Intact).map(|(at, _)| at).min()
}

/// Transfers `packets` packets over a link with these impairments in both directions.
fn transfer(packets: u32, timeout: Duration, emulation: &Emulation, seed: u64) -> Outcome {
    let [mut forward, mut back] = [0, 1].map(|owner| Direction::new(emulation.clone(), seed, owner));
    let (mut now, mut sent) = (Instant::ZERO, 0);
    for _ in 0..packets {
        loop {
            sent += 1;
            let deadline = now + timeout;
            let acknowledged = arrival(&mut forward, now, PACKET)
                .and_then(|received| arrival(&mut back, received, ACK))
                .filter(|at| *at <= deadline);
            now = acknowledged.unwrap_or(deadline);
            if acknowledged.is_some() {
                break;
            }
        }
    }
    Outcome { took: now - Instant::ZERO, sent }
}

fn lossy(loss: f64) -> Emulation {
    Emulation::delay(Duration::from_millis(10)).with_rate(Some(2_000_000)).with_loss(loss)
}

#[expect(clippy::print_stdout, reason = "an example")]
fn main() {
    println!("loss  transmissions  seconds");
    for loss in [0.0, 0.05, 0.2] {
        let Outcome { took, sent } = transfer(1000, Duration::from_millis(50), &lossy(loss), 1);
        println!("{loss:4}  {sent:13}  {:7.1}", took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_link_takes_one_round_trip_for_a_packet() {
        let outcome = transfer(10, Duration::from_millis(50), &lossy(0.0), 1);
        // 1500 and 40 bytes at 2 Mb/s, and 10 ms for each direction.
        let round_trip = Duration::from_micros(6000 + 160 + 20_000);
        assert_eq!(outcome, Outcome { took: round_trip * 10, sent: 10 });
    }

    #[test]
    fn every_loss_costs_a_transmission() {
        let Outcome { sent, .. } = transfer(2000, Duration::from_millis(50), &lossy(0.1), 1);
        // A round trip succeeds with probability 0.81.
        let expected = 2000.0 / 0.81;
        assert!((f64::from(sent) - expected).abs() < 0.05 * expected, "{sent}");
    }

    #[test]
    fn a_seed_repeats_the_run() {
        let run = |seed| transfer(500, Duration::from_millis(50), &lossy(0.3), seed);
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn an_outage_delays_the_transfer_by_its_length() {
        let outage = (Instant::from_millis(100), Instant::from_secs(3));
        let emulation = lossy(0.0).with_blackouts(vec![outage]);
        let [with, without] =
            [&emulation, &lossy(0.0)].map(|e| transfer(10, Duration::from_millis(50), e, 1).took);
        let delayed = with - without;
        assert!(delayed >= Duration::from_millis(2850) && delayed < Duration::from_millis(3000), "{delayed}");
    }
}
