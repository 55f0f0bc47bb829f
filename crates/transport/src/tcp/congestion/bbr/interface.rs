//! Use of BBR by congestion control: loss recovery goes on as usual, and BBR sets the window.

use super::{Bbr, BbrModel, ConnectionStart, ControlOutput};
use crate::tcp::config::Config;
use crate::tcp::congestion::{CongestionControl, CongestionState};
use hopline_core::{Duration, Instant, Purpose, RandomStream, Seq32};

impl Bbr {
    /// Creates the state of BBR if it is the configured algorithm. Its random numbers depend on the initial sequence
    /// number, which is random.
    pub(in crate::tcp::congestion) fn from_config(config: &Config, iss: Seq32) -> Option<Box<Self>> {
        let CongestionControl::Bbr(bbr) = config.congestion_control else { return None };
        let random = RandomStream::global(u64::from(iss.0), 0, Purpose::Probing);
        Some(Box::new(Self::new(bbr, random)))
    }
}

impl CongestionState {
    /// Returns the state of BBR if it is the algorithm in use.
    pub(crate) fn bbr(&mut self) -> Option<&mut Bbr> {
        self.bbr.as_deref_mut()
    }

    /// Returns BBR's model of the path.
    pub(crate) fn bbr_model(&self) -> Option<BbrModel> {
        self.bbr.as_ref().map(|bbr| bbr.model())
    }

    /// Starts BBR on an open connection, after [`Self::established`]. `handshake_rtt`: of the handshake.
    pub(crate) fn start_bbr(&mut self, now: Instant, round_trip: Option<Duration>) {
        let (mss, window) = (u64::from(self.window.mss), u64::from(self.window.cwnd));
        if let Some(bbr) = &mut self.bbr {
            bbr.start(&ConnectionStart { now, mss, initial_window: window, handshake_rtt: round_trip });
        }
    }

    /// Sets the window that BBR has computed. Returns all outputs of BBR.
    pub(crate) fn apply_bbr(&mut self) -> Option<ControlOutput> {
        let bbr = self.bbr.as_mut()?;
        bbr.limit_window(u64::from(self.window.max_cwnd()));
        let orders = bbr.output();
        self.window.cwnd = orders.cwnd.max(u64::from(self.window.mss)) as u32;
        Some(orders)
    }
}
