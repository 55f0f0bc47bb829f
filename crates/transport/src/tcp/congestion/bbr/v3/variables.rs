//! Variables of BBRv3 under the draft's names, for tests of its cases.

use super::super::bounds::ModelBounds;
use super::super::common::IdleRestartState;
use super::super::{Bbr, BbrState, Version};
use super::{FullBw, State, UndoState, V3};
use crate::tcp::congestion::CongestionState;
use hopline_core::{Duration, Instant};

/// Variables of one connection at one time. Rates in bytes per second, volumes in bytes; `None` is "Infinity".
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct V3Variables {
    pub(crate) state: BbrState,
    pub(crate) pacing_gain: f64,
    pub(crate) cwnd_gain: f64,
    pub(crate) pacing_rate: f64,
    pub(crate) cwnd: u64,
    pub(crate) max_bw: f64,
    /// Newest entry of the filter of "max_bw": cycle and rate.
    pub(crate) newest_bw: Option<(u64, f64)>,
    pub(crate) bw: f64,
    pub(crate) bw_latest: f64,
    pub(crate) bounds: ModelBounds,
    /// Bounds to restore if the losses are spurious, and whether a state is restored as well.
    pub(crate) undo_bounds: ModelBounds,
    pub(crate) undo_state: Option<UndoState>,
    pub(crate) full_bw_now: bool,
    pub(crate) full_bw_reached: bool,
    pub(crate) full_bw_count: u8,
    pub(crate) round_count: u64,
    /// "drain_start_round", in Drain.
    pub(crate) drain_start_round: Option<u64>,
    pub(crate) cycle_count: u64,
    pub(crate) cycle_start: Instant,
    pub(crate) bw_probe_wait: Duration,
    pub(crate) prev_probe_too_high: bool,
    pub(crate) probe_up_acked_per_inc: u64,
    pub(crate) min_rtt: Option<Duration>,
    pub(crate) probe_rtt_min_stamp: Instant,
    pub(crate) idle_restart: bool,
    pub(crate) extra_acked: u64,
    /// Newest entry of the filter of "extra_acked": round and bytes.
    pub(crate) newest_extra: Option<(u64, f64)>,
    /// "bdp": the product of "bw" and "min_rtt".
    pub(crate) bdp: u64,
    /// "Inflight(1.0)" by "bw", and by "max_bw".
    pub(crate) inflight: u64,
    pub(crate) max_bw_inflight: u64,
    pub(crate) inflight_with_headroom: Option<u64>,
    pub(crate) target_inflight: u64,
}

impl CongestionState {
    /// Returns the variables of BBRv3, which is in use.
    pub(crate) fn bbr_v3_variables(&self) -> V3Variables {
        self.bbr.as_ref().expect("BBR is in use").v3_variables()
    }
}

impl Bbr {
    /// Returns the variables of version 3, which is in use.
    pub(crate) fn v3_variables(&self) -> V3Variables {
        let Version::V3(v3) = &self.machine else { panic!("version 3 is in use") };
        let output = &self.output;
        V3Variables {
            state: v3.model(output.pacing_rate).state,
            pacing_gain: v3.pacing_gain(),
            cwnd_gain: v3.cwnd_gain(),
            pacing_rate: output.pacing_rate,
            cwnd: output.cwnd,
            max_bw: v3.max_bw(),
            newest_bw: v3.bandwidth.newest(),
            bw: v3.bw(),
            bw_latest: v3.round_signals.bw_latest,
            bounds: v3.bounds,
            undo_bounds: v3.undo.bounds,
            undo_state: v3.undo.to,
            full_bw_now: v3.full_bw_now == FullBw::Yes,
            full_bw_reached: v3.full_bw_reached == FullBw::Yes,
            full_bw_count: v3.full_bw.full_bw_count,
            round_count: v3.rounds.count,
            drain_start_round: v3.drain_start_round(),
            cycle_count: v3.cycle_count,
            cycle_start: v3.cycle.cycle_start,
            bw_probe_wait: v3.cycle.probe_wait,
            prev_probe_too_high: v3.cycle.last_probe.too_high,
            probe_up_acked_per_inc: v3.cycle.probe_up_count,
            min_rtt: v3.min_rtt.min_rtt,
            probe_rtt_min_stamp: v3.min_rtt.probe_rtt_min_measured,
            idle_restart: v3.restart == IdleRestartState::FromIdle,
            extra_acked: v3.extra_acked.max.max() as u64,
            newest_extra: v3.extra_acked.max.newest(),
            bdp: v3.bdp_multiple(1.0),
            inflight: v3.quantization_budget(v3.bdp_multiple(1.0), output),
            max_bw_inflight: v3.max_inflight(output),
            inflight_with_headroom: v3.inflight_with_headroom(),
            target_inflight: v3.target_inflight(output.cwnd),
        }
    }
}

impl V3 {
    fn drain_start_round(&self) -> Option<u64> {
        if let State::Drain(round) = self.state { Some(round) } else { None }
    }
}
