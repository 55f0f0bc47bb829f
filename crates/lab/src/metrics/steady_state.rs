//! End of a flow's start-up, and goodput after it.

use crate::stats::WarmUp;
use hopline_core::{Duration, Instant};
use hopline_sim::outcome::FlowOutcome;

/// Returns the end of a flow's start-up, since the start of the run; a whole second. `None` if MSER-5 finds
/// no end.
pub(super) fn warm_up(flow: &FlowOutcome) -> Option<Duration> {
    let (begin, goodput) = seconds(flow)?;
    let samples = WarmUp::Mser5.samples(&goodput).ok()?;
    Some(begin.since(Instant::ZERO) + Duration::from_secs(samples as u64))
}

/// Returns the mean goodput of the seconds after the start-up.
pub(super) fn goodput_bps(flow: &FlowOutcome) -> Option<f64> {
    let (_, goodput) = seconds(flow)?;
    let rest = WarmUp::Mser5.without_warm_up(&goodput).ok()?;
    Some(rest.iter().sum::<f64>() / rest.len() as f64)
}

/// Returns the goodput of each whole second that counts, bit/s, and the begin of the first one.
pub(super) fn seconds(flow: &FlowOutcome) -> Option<(Instant, Vec<f64>)> {
    let samples = flow.series.iter().map(|sample| (sample.at, sample.bytes_received));
    let counts = flow.counting_since..=flow.counting_since + flow.active_time;
    let ends: Vec<(Instant, u64)> =
        std::iter::once((Instant::ZERO, 0)).chain(samples).filter(|(at, _)| counts.contains(at)).collect();
    let rate = |pair: &[(Instant, u64)]| {
        (pair[1].1 - pair[0].1) as f64 * 8.0 / (pair[1].0 - pair[0].0).as_secs_f64()
    };
    Some((ends.first()?.0, ends.windows(2).map(rate).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_sim::outcome::FlowSample;

    /// Returns a flow that counts from `since_s` for `active_s`, with these bits delivered in each second of
    /// the run.
    fn flow(since_s: f64, active_s: u64, bits: impl IntoIterator<Item = u64>) -> FlowOutcome {
        let mut bytes_received = 0;
        let sample = |(second, bits)| {
            bytes_received += bits / 8;
            let at = Instant::from_secs(second);
            FlowSample { at, bytes_received, ..FlowSample::default() }
        };
        FlowOutcome {
            counting_since: Instant::ZERO + Duration::from_secs_f64(since_s),
            active_time: Duration::from_secs(active_s),
            series: (1..).zip(bits).map(sample).collect(),
            ..FlowOutcome::default()
        }
    }

    fn step(low_s: usize, high_s: usize) -> impl Iterator<Item = u64> {
        std::iter::repeat_n(80, low_s).chain(std::iter::repeat_n(800, high_s))
    }

    #[test]
    fn a_flow_that_speeds_up_is_steady_from_then_on() {
        let flow = flow(0.0, 60, step(10, 50));
        assert_eq!((warm_up(&flow), goodput_bps(&flow)), (Some(Duration::from_secs(10)), Some(800.0)));
    }

    #[test]
    fn partial_seconds_are_ignored() {
        // From 4.5 s on: the first whole second begins at 5 s. Seconds after 45 s do not count.
        let flow = flow(4.5, 40, step(5, 40).chain([0; 20]));
        assert_eq!((warm_up(&flow), goodput_bps(&flow)), (Some(Duration::from_secs(5)), Some(800.0)));
        assert_eq!(seconds(&flow).map(|(_, goodput)| goodput.len()), Some(39));
    }

    #[test]
    fn a_flow_that_does_not_settle_has_no_steady_goodput() {
        let faster_and_faster = flow(0.0, 60, (0..60).map(|second| 80 * second));
        for flow in [flow(0.0, 29, step(0, 29)), faster_and_faster, flow(70.0, 0, step(0, 60))] {
            assert_eq!((warm_up(&flow), goodput_bps(&flow)), (None, None));
        }
        assert_eq!(goodput_bps(&flow(0.0, 60, step(0, 0).chain([0; 60]))), Some(0.0), "silence is steady");
    }
}
