//! Use of BBR by congestion control: loss recovery goes on as usual, and BBR sets the window.

use super::{Bbr, BbrModel, Opening, Orders};
use crate::tcp::config::Config;
use crate::tcp::congestion::{Control, WindowLaw};
use hopline_core::{Duration, Instant, Purpose, Seq32, Stream};

impl Bbr {
    /// Creates the state of BBR if it is the configured algorithm. Its random numbers depend on the initial sequence
    /// number, which is random.
    pub(in crate::tcp::congestion) fn of(config: &Config, iss: Seq32) -> Option<Box<Self>> {
        let WindowLaw::Bbr(bbr) = config.law else { return None };
        let random = Stream::global(u64::from(iss.0), 0, Purpose::Probing);
        Some(Box::new(Self::new(bbr, random)))
    }
}

impl Control {
    /// Returns the state of BBR if it is the algorithm in use.
    pub(crate) fn bbr(&mut self) -> Option<&mut Bbr> {
        self.bbr.as_deref_mut()
    }

    /// Returns BBR's model of the path.
    pub(crate) fn bbr_model(&self) -> Option<BbrModel> {
        self.bbr.as_ref().map(|bbr| bbr.model())
    }

    /// Starts BBR on an open connection, after [`Self::established`]. `round_trip`: of the handshake.
    pub(crate) fn open_bbr(&mut self, now: Instant, round_trip: Option<Duration>) {
        let (mss, window) = (u64::from(self.window.mss), u64::from(self.window.cwnd));
        if let Some(bbr) = &mut self.bbr {
            bbr.open(&Opening { now, mss, window, round_trip });
        }
    }

    /// Sets the window that BBR has computed. Returns all outputs of BBR.
    pub(crate) fn follow_bbr(&mut self) -> Option<Orders> {
        let bbr = self.bbr.as_mut()?;
        bbr.limit_window(u64::from(self.window.most()));
        let orders = bbr.orders();
        self.window.cwnd = orders.cwnd.max(u64::from(self.window.mss)) as u32;
        Some(orders)
    }
}
