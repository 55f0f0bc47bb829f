//! A TCP transfer in virtual time over a link with 2 % loss: `cargo run --example lossy_link`.

use hopline_core::{Duration, Instant, Length, LinkId, Payload, Seq32, StateMachine};
use hopline_link::{CopyState, Direction, Emulation};
use hopline_transport::tcp::{Config, Endpoint, Ports};
use hopline_wire::tcp::Segment;
use std::collections::BTreeMap;
use std::error::Error;

const BYTES: u64 = 5_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let client = Endpoint::new(Config::modern(), Ports { local: 40_000, remote: 80 }, Seq32(1))?;
    let server = Endpoint::new(Config::modern(), Ports { local: 80, remote: 40_000 }, Seq32(2))?;
    let mut ends = [client, server];
    ends[1].listen()?;
    ends[0].connect(Instant::ZERO)?;
    ends[0].send(Instant::ZERO, Length(BYTES))?;

    let emulation = Emulation::delay(Duration::from_millis(25))
        .with_rate(Some(20_000_000))
        .with_queue(Some(100))
        .with_loss(0.02);
    let mut link = [0, 1].map(|end| Direction::new(emulation.clone(), 1, end));
    // Segments in flight, by time of arrival and order of departure, each with the end that it goes to.
    let mut in_flight: BTreeMap<(Instant, u64), (usize, Segment<Length>)> = BTreeMap::new();
    let (mut now, mut sent, mut received) = (Instant::ZERO, 0, 0);

    while received < BYTES {
        for end in 0..2 {
            while let Some(segment) = ends[end].poll_transmit(now) {
                for (arrival, fate) in link[end].transmit(now, 20 + segment.wire_len()).into_iter().flatten()
                {
                    // A receiver drops a segment with a wrong checksum.
                    if fate == CopyState::Intact {
                        in_flight.insert((arrival, sent), (1 - end, segment));
                        sent += 1;
                    }
                }
            }
            while ends[end].poll_event().is_some() {}
        }
        while let Some(data) = ends[1].recv() {
            received += data.len();
        }

        let timers = ends.iter().filter_map(|end| end.poll_timeout()).map(|(at, _)| at);
        let arrival = in_flight.keys().next().map(|&(at, _)| at);
        now = timers.chain(arrival).min().ok_or("nothing is in flight, and no timer is set")?.max(now);
        ends.iter_mut().for_each(|end| end.handle_timeout(now));
        while let Some(entry) = in_flight.first_entry().filter(|entry| entry.key().0 <= now) {
            let (end, segment) = entry.remove();
            ends[end].handle_packet(now, LinkId::ONLY, segment);
        }
    }

    let (seconds, resent) = (now.as_secs_f64(), ends[0].stats().retransmissions);
    #[expect(clippy::print_stdout, reason = "an example")]
    {
        println!(
            "{BYTES} bytes in {seconds:.1} s, {:.2} Mb/s, {resent} segments retransmitted",
            BYTES as f64 * 8e-6 / seconds
        );
    }
    Ok(())
}
