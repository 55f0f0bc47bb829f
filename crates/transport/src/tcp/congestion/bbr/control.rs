//! What congestion control does where BBR is the law: recovery goes its way, and the window is what BBR says.

use super::{Bbr, BbrModel, Opening, Orders};
use crate::tcp::config::Config;
use crate::tcp::congestion::{Control, WindowLaw};
use hopline_core::{Duration, Instant, Purpose, Seq32, Stream};

impl Bbr {
    /// The machine, where BBR is the law. What it draws depends on the first sequence number, which is drawn itself.
    pub(in crate::tcp::congestion) fn of(config: &Config, iss: Seq32) -> Option<Box<Self>> {
        let WindowLaw::Bbr(bbr) = config.law else { return None };
        let random = Stream::global(u64::from(iss.0), 0, Purpose::Probing);
        Some(Box::new(Self::new(bbr, random)))
    }
}

impl Control {
    /// BBR, where it is the law.
    pub(crate) fn bbr(&mut self) -> Option<&mut Bbr> {
        self.bbr.as_deref_mut()
    }

    /// What BBR thinks.
    pub(crate) fn bbr_model(&self) -> Option<BbrModel> {
        self.bbr.as_ref().map(|bbr| bbr.model())
    }

    /// The connection is open, after [`Self::established`]. `round_trip`: of the handshake.
    pub(crate) fn open_bbr(&mut self, now: Instant, round_trip: Option<Duration>) {
        let (mss, window) = (u64::from(self.window.mss), u64::from(self.window.cwnd));
        if let Some(bbr) = &mut self.bbr {
            bbr.open(&Opening { now, mss, window, round_trip });
        }
    }

    /// The window is what BBR says. Returns the rest of what it says.
    pub(crate) fn follow_bbr(&mut self) -> Option<Orders> {
        let bbr = self.bbr.as_mut()?;
        bbr.limit_window(u64::from(self.window.most()));
        let orders = bbr.orders();
        self.window.cwnd = orders.cwnd.max(u64::from(self.window.mss)) as u32;
        Some(orders)
    }
}
