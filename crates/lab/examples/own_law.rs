//! A user-defined congestion control algorithm compared with two built-in ones: `cargo run --release -p
//! hopline-lab --example own_law`.

use hopline_lab::experiment::{RunOptions, in_memory};
use hopline_lab::run::NoObserver;
use hopline_lab::user_defined::{
    CustomAlgorithms, CustomCcAck, CustomCcLoss, CustomCcTimeout, CustomCongestionControl,
};
use hopline_lab::{Plan, Scenario, text};
use hopline_scenario::parse_vary;
use std::path::Path;

/// AIMD: grows by this number of segments in each round trip, and keeps `left` of the window after a loss.
#[derive(Debug)]
struct Aimd {
    segments: f64,
    left: f64,
}

impl CustomCongestionControl for Aimd {
    fn on_ack(&mut self, ack: &CustomCcAck) -> Result<f64, String> {
        let window = ack.state.cwnd_bytes;
        if window < f64::from(ack.state.ssthresh_bytes) {
            return Ok(ack.slow_start_bytes);
        }
        let share = ack.acked_bytes as f64 / window;
        Ok(window + self.segments * f64::from(ack.state.mss_bytes) * share)
    }

    fn on_loss(&mut self, loss: &CustomCcLoss) -> Result<f64, String> {
        Ok(self.left * f64::from(loss.reduction_base_bytes))
    }

    fn on_timeout(&mut self, timeout: &CustomCcTimeout) -> Result<f64, String> {
        Ok(f64::from(timeout.reduction_base_bytes) / 2.0)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let machines = CustomAlgorithms::default().with_congestion_control("gentle", "gentle 1", |_seed| {
        Ok(Box::new(Aimd { segments: 0.2, left: 0.8 }))
    });
    let chain = Path::new("scenarios/chain/scenario.toml");
    let scenario = Scenario::load_with(chain, &[], machines).map_err(|e| e.to_string())?;
    let laws = parse_vary("tcp.congestion_control=aimd,cubic,own:gentle").map_err(|e| e.to_string())?;
    let plan = Plan::new(&scenario, &[laws]).map_err(|e| e.to_string())?;
    let how = RunOptions { jobs: None, command: &[], watch: &NoObserver };
    let (comparison, _records) = in_memory(&plan, how).map_err(|e| format!("{e:?}"))?;
    let said = text::comparison::describe(&comparison);
    std::io::Write::write_all(&mut std::io::stdout(), said.as_bytes())?;
    Ok(())
}
