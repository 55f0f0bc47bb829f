//! Cost of a transfer over a cable, compared with TPA in the same round. Run by hand (`--ignored`), on an idle host with
//! an optimised build. `HOPLINE_MEGABYTES` sets the amount (default 1000), `HOPLINE_AHEAD_US` the time by which a packet
//! may leave early.

use crate::wide_over_link::cables::{THERE, join};
use crate::wide_over_link::{PORT, known};
use hopline_core::Duration as Span;
use hopline_linux::veth::Offload;
use hopline_streams::tpa;
use hopline_streams::wide::{Config, Wide};
use hopline_streams::{Host, Protocol};
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown};
use std::thread;
use std::time::Instant;

const ROUNDS: usize = 3;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

pub(crate) fn gso() {
    compare(Offload::Gso);
}

pub(crate) fn single_packets() {
    compare(Offload::SinglePackets);
}

fn ahead(mut config: Config) -> Config {
    if let Some(micros) = setting("HOPLINE_AHEAD_US") {
        let transport = config.transport().with_pace_ahead(Span::from_micros(micros));
        config = config.with_transport(transport);
    }
    config
}

fn compare(trains: Offload) {
    let bytes = setting("HOPLINE_MEGABYTES").unwrap_or(1000) * 1_000_000;
    for _ in 0..ROUNDS {
        let wide = carried::<Wide>(trains, bytes, [ahead(known(1, 2)), ahead(known(2, 1))]);
        let tpa = carried::<tpa::Tpa>(trains, bytes, [tpa::config(12), tpa::config(12)]);
        let text: Vec<_> = [("tpa-wide", wide), ("tpa", tpa)]
            .iter()
            .map(|(name, (rate, cost))| format!("{name} {rate:.0} Mb/s, {cost:.2} CPU s a GB"))
            .collect();
        #[expect(clippy::print_stderr, reason = "figures for whoever asked for them")]
        {
            eprintln!("{trains:?}: {}", text.join("; "));
        }
    }
}

/// Returns the processor time of this process, in seconds.
fn processor() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Returns the goodput in Mb/s, and the processor seconds per GB of both ends.
fn carried<P: Protocol>(trains: Offload, bytes: u64, [ours, theirs]: [P::Config; 2]) -> (f64, f64)
where
    P::Config: Sync + Send,
{
    let hosts = join(trains);
    let there = hosts[1].run(|| Host::<P>::bind((THERE, PORT)).unwrap()).unwrap();
    let here = hosts[0].run(|| Host::<P>::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap()).unwrap();
    let listener = there.listen(&theirs, 1).unwrap();
    let stream = here.connect((THERE, PORT).into(), &ours, None).unwrap();
    #[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
    let (began, before) = (Instant::now(), processor());
    thread::scope(|scope| {
        scope.spawn(|| {
            let block = vec![7; 1 << 16];
            let mut left = bytes as usize;
            while left > 0 {
                let len = left.min(block.len());
                { &stream }.write_all(&block[..len]).unwrap();
                left -= len;
            }
            stream.shutdown(Shutdown::Write).unwrap();
        });
        let (accepted, _) = listener.accept().unwrap();
        let (mut buffer, mut got) = (vec![0; 1 << 16], 0);
        loop {
            match { &accepted }.read(&mut buffer).unwrap() {
                0 => break,
                len => got += len as u64,
            }
        }
        assert_eq!(got, bytes);
    });
    let (seconds, used) = (began.elapsed().as_secs_f64(), processor() - before);
    (bytes as f64 * 8e-6 / seconds, used / (bytes as f64 * 1e-9))
}
