//! A congestion controller written for quinn, compared with quinn's own over 802.11: `cargo run --release -p hopline-lab
//! --features quic --example quinn_controller`.

use hopline_config::document::Setting;
use hopline_lab::experiment::{RunOptions, in_memory};
use hopline_lab::run::NoObserver;
use hopline_lab::user_defined::CustomAlgorithms;
use hopline_lab::user_defined::quinn_proto::RttEstimator;
use hopline_lab::user_defined::quinn_proto::congestion::{Controller, ControllerFactory};
use hopline_lab::{Plan, Scenario, text};
use hopline_scenario::parse_vary;
use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Additive increase while packets wait less than `target` in queues, and a cut by a quarter when they wait longer or are lost.
#[derive(Clone, Debug)]
struct DelayBased {
    target: Duration,
    datagram: u64,
    window: u64,
    /// Packets sent before this time say nothing about the last cut.
    last_cut: Option<Instant>,
}

impl DelayBased {
    fn cut(&mut self, now: Instant, sent: Instant) {
        if self.last_cut.is_none_or(|last| sent > last) {
            self.window = (self.window * 3 / 4).max(2 * self.datagram);
            self.last_cut = Some(now);
        }
    }
}

impl Controller for DelayBased {
    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        if rtt.get() > rtt.min() + self.target {
            self.cut(now, sent);
        } else if !app_limited {
            // A datagram in each round trip.
            self.window += (self.datagram * bytes).div_ceil(self.window);
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, _persistent: bool, _lost_bytes: u64) {
        self.cut(now, sent);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.datagram = new_mtu.into();
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        10 * self.datagram
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Makes a controller for each connection.
struct Factory {
    target: Duration,
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let datagram = current_mtu.into();
        Box::new(DelayBased { target: self.target, datagram, window: 10 * datagram, last_cut: None })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = Duration::from_millis(20);
    let machines =
        CustomAlgorithms::default().with_quic_controller("delay", "delay 1", move |_seed| Factory { target });
    let settings = ["transport=quic", "duration_s=30", "runs=4"].map(|text| Setting::parse("--set", text));
    let settings = settings.into_iter().collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    let chain = Path::new("scenarios/chain/scenario.toml");
    let scenario = Scenario::load_with(chain, &settings, machines).map_err(|e| e.to_string())?;
    let controllers =
        parse_vary("quic.congestion_control=cubic,newreno,bbr,own:delay").map_err(|e| e.to_string())?;
    let plan = Plan::new(&scenario, &[controllers]).map_err(|e| e.to_string())?;
    let how = RunOptions { jobs: None, command: &[], watch: &NoObserver };
    let (comparison, _records) = in_memory(&plan, how).map_err(|e| format!("{e:?}"))?;
    let said = text::comparison::describe(&comparison);
    std::io::Write::write_all(&mut std::io::stdout(), said.as_bytes())?;
    Ok(())
}
