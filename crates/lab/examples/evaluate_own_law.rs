//! Evaluation of a user-defined congestion control algorithm by RFC 9743: `cargo run --release -p hopline-lab --example
//! evaluate_own_law -- 5.1.2`. Arguments: sections or networks; without any, all.

use hopline_lab::evaluation::{Law, Selection, open};
use hopline_lab::experiment::RunOptions;
use hopline_lab::plan::Effort;
use hopline_lab::run::NoObserver;
use hopline_lab::text::evaluation::describe;
use hopline_lab::user_defined::{
    CustomAlgorithms, CustomCcAck, CustomCcLoss, CustomCcTimeout, CustomCongestionControl,
};
use std::time::Duration;

/// Grows by a segment in each round trip until queues delay packets by `target`, then keeps its window.
#[derive(Debug)]
struct DelayTarget {
    target: Duration,
    least_rtt: Option<Duration>,
}

impl CustomCongestionControl for DelayTarget {
    fn on_ack(&mut self, ack: &CustomCcAck) -> Result<f64, String> {
        let Some(rtt) = ack.rtt.map(|rtt| Duration::from_nanos(rtt.as_nanos())) else {
            return Ok(ack.state.cwnd_bytes);
        };
        let least = self.least_rtt.map_or(rtt, |least| least.min(rtt));
        self.least_rtt = Some(least);
        let segment = f64::from(ack.state.mss_bytes) * ack.acked_bytes as f64 / ack.state.cwnd_bytes;
        let is_late = rtt - least > self.target;
        Ok(match ack.state.cwnd_bytes < f64::from(ack.state.ssthresh_bytes) {
            true if !is_late => ack.slow_start_bytes,
            _ if is_late => ack.state.cwnd_bytes - segment,
            _ => ack.state.cwnd_bytes + segment,
        })
    }

    fn on_loss(&mut self, loss: &CustomCcLoss) -> Result<f64, String> {
        Ok(0.7 * f64::from(loss.reduction_base_bytes))
    }

    fn on_timeout(&mut self, timeout: &CustomCcTimeout) -> Result<f64, String> {
        Ok(f64::from(timeout.reduction_base_bytes) / 2.0)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let laws = CustomAlgorithms::default().with_congestion_control("delay-target", "1", |_seed| {
        Ok(Box::new(DelayTarget { target: Duration::from_millis(10), least_rtt: None }))
    });
    let evaluated = [Law::parse("own:delay-target").map_err(|e| e.to_string())?];
    let sections: Vec<String> = std::env::args().skip(1).collect();
    let file = open(None).map_err(|e| e.to_string())?;
    let plan = file
        .load(&evaluated, Selection { only: &sections, ..Selection::default() }, &laws)
        .map_err(|e| e.to_string())?;
    let made = plan.run(RunOptions { jobs: None, command: &[], watch: &NoObserver });
    let results = plan.judge(&made.map_err(|e| format!("{e:?}"))?);
    let said = describe(&plan, &results, Effort::Full);
    std::io::Write::write_all(&mut std::io::stdout(), said.as_bytes())?;
    Ok(())
}
