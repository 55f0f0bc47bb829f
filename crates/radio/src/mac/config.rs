//! Parameters of the DCF.

use crate::rate::{Preamble, Rate};
use core::ops::RangeInclusive;
use hopline_core::Duration;
use thiserror::Error;

/// Parameters of the DCF of one node.
///
/// Presets: [`Config::dot11b`], [`Config::dot11a`] follow the standard; [`Config::ns2_wavelan`] follows ns-2.35,
/// [`Config::ns3_wavelan`] ns-3.37. [`Config::madwifi`] has the defaults of a driver. [`Config::qualnet`] is the standard at the rates of a paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Slot time. b: 20 µs, a: 9 µs (802.11-2020 Tables 16-4, 17-21).
    pub slot: Duration,
    /// Short interframe space. b: 10 µs, a: 16 µs.
    pub sifs: Duration,
    /// Smallest contention window, 2ⁿ − 1, 1–1023. b: 31, a: 15.
    pub cw_min: u16,
    /// Largest contention window, 2ⁿ − 1, `cw_min`–32767. 1023.
    pub cw_max: u16,
    /// Attempts of RTS and of frames up to the RTS threshold, 1–255. 7.
    pub short_retry_limit: u8,
    /// Attempts of frames above the RTS threshold, 1–255. 4.
    pub long_retry_limit: u8,
    /// RTS threshold: longest unicast MAC frame in bytes, FCS included, without RTS. 0: RTS always. 2347: never.
    pub rts_threshold_bytes: u32,
    /// Rate of unicast data.
    pub data_rate: Rate,
    /// Rate of RTS, CTS, ACK and group frames.
    pub basic_rate: Rate,
    /// Preamble of DSSS and CCK frames.
    pub preamble: Preamble,
    /// Bytes that a data frame carries beyond a three-address header, the packet and the FCS. LLC and SNAP: 8.
    /// ns-2.35 has neither, but always a fourth address: 6.
    pub data_extra_bytes: u32,
    /// Acknowledgment policy of unicast data.
    pub ack_policy: AckPolicy,
    /// With [`AckPolicy::NoAck`]: lengths in bytes, IP header included, of the packets that are not acknowledged. Other
    /// packets are acknowledged as with [`AckPolicy::Normal`]. Default all.
    pub no_ack_bytes: RangeInclusive<u32>,
    /// Limit of a frame burst (TXOP, 802.11-2020 §10.23.2.9), from the start of its first frame to the end of the last
    /// response. A station that has won the medium may send further frames SIFS apart, to any receivers, as long as each
    /// frame that needs a response gets it. The first frame is sent in any case. Above zero; default `None`, no bursts. No
    /// effect with [`AckPolicy::BlockAck`]: blocks have a limit of their own.
    pub burst_limit: Option<Duration>,
    /// Lifetime of an MSDU from the time the MAC takes it. An MSDU that is not acknowledged by then is given up at the next
    /// attempt, and reported as failed (802.11-2020 §10.23.2.12.1). Above zero. The standard's default is 500 TU, 512 ms;
    /// default here `None`, no limit but that of retries.
    pub msdu_lifetime: Option<Duration>,
    /// With [`AckPolicy::BlockAck`]: Block Ack Timeout Value (802.11-2020 §9.4.1.14, §10.25.5). The agreement with a sender
    /// that was silent for so long is dropped, and packets that waited for earlier ones are delivered. Above zero; default
    /// `None`, never.
    pub block_ack_timeout: Option<Duration>,
    /// With [`AckPolicy::BlockAck`]: setup of agreements. Default [`BlockAckSetup::None`].
    pub block_ack_setup: BlockAckSetup,
    /// Conditions for transmission without backoff.
    pub first_access: FirstAccess,
    /// Deferral after a frame that could not be decoded.
    pub eifs: EifsRule,
    /// Timeout of CTS and ACK.
    pub response_timeout: ResponseTimeout,
    /// Medium state required to send a CTS, and to send data after a CTS.
    pub reservation: Reservation,
    /// Backoff values.
    pub backoff_range: BackoffRange,
    /// Reset of the NAV that an RTS set if no frame follows (802.11-2020 §10.3.2.4, last paragraph).
    pub nav_reset: NavReset,
    /// Reporting of overheard data frames for other stations to the layer above.
    pub tap: Tap,
}

/// Acknowledgment policy of unicast data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AckPolicy {
    /// The receiver answers each frame with an ACK after SIFS.
    #[default]
    Normal,
    /// 802.11e No Ack: each frame of [`Config::no_ack_bytes`] is sent once, without RTS, and never acknowledged.
    NoAck,
    /// 802.11e immediate block acknowledgment (802.11-2020 §10.25): several frames for one receiver SIFS apart, then one
    /// BlockAckReq and one BlockAck for all of them, as soon as both stations [agree](BlockAckSetup).
    BlockAck {
        /// Most MSDUs in a block, 1–64. 12; 12 to 16 are recommended for the sake of delay.
        block_size: u8,
        /// TXOP limit: longest time from the first data frame of a block to the end of the BlockAck; one frame is sent in
        /// any case. `None`: the longest time that the Duration field can reserve, 32,767 µs with RTS and CTS.
        txop_limit: Option<Duration>,
    },
}

impl AckPolicy {
    /// The usual `block_size`.
    pub const DEFAULT_BLOCK_SIZE: u8 = 12;

    /// Block acknowledgment of up to 12 MSDUs, without TXOP limit.
    #[must_use]
    pub const fn block_ack() -> Self {
        Self::BlockAck { block_size: Self::DEFAULT_BLOCK_SIZE, txop_limit: None }
    }
}

/// Setup of block acknowledgment agreements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BlockAckSetup {
    /// All stations agree from the start, at no cost.
    #[default]
    None,
    /// ADDBA Request and Response (802.11-2020 §10.25.2). Until the agreement stands, and if none is reached, each
    /// frame gets an ACK.
    Addba,
}

/// Conditions for transmission without backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FirstAccess {
    /// The medium has been idle for DIFS and the backoff after the last frame is over (802.11-2020 §10.3.4.2).
    #[default]
    Immediate,
    /// The medium is idle at the moment the frame arrives, for however short a time; an ACK that is still due does not
    /// count. A relay therefore forwards received packets without backoff. This is ns-3.37.
    IdleOnArrival,
    /// Never. ns-2.35 draws a backoff for every frame, also on an idle medium.
    AlwaysBackoff,
}

/// Deferral after a frame that could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EifsRule {
    /// EIFS in place of DIFS, until a frame is received correctly (802.11-2020 §10.3.2.3.7).
    #[default]
    Standard,
    /// ns-2.35 sets its NAV to EIFS: DIFS is added, and no CTS is sent in the meantime.
    AsNav,
}

/// Timeout of CTS and ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ResponseTimeout {
    /// SIFS + slot + the time to recognise a preamble; if a frame has begun by then, until its end (802.11-2020 §10.3.2.9,
    /// §10.3.2.11).
    #[default]
    Standard,
    /// SIFS + the whole response + twice ns-2's largest propagation delay of 2 µs, whatever else arrives; DIFS counts from
    /// the end of the wait. A station that sent a CTS waits for the data in the same way, and answers no other station.
    WholeResponse,
}

/// Medium state required to send a CTS, and to send data after a CTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reservation {
    /// CTS: NAV idle. Data after CTS: no condition (802.11-2020 §10.3.2.9).
    #[default]
    Standard,
    /// ns-2.35: NAV and carrier idle in both cases, at the moment of sending. Data that must not be sent contend again.
    MediumIdle,
}

/// Backoff values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BackoffRange {
    /// 0 to CW (802.11-2020 §10.3.3).
    #[default]
    Inclusive,
    /// 0 to CW − 1, as ns-2.35 draws.
    Exclusive,
}

/// Handling of a NAV set by an RTS without a following frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NavReset {
    /// Kept. ns-2.35, and what the standard allows.
    #[default]
    Never,
    /// Dropped if no frame has begun after 2·SIFS + CTS + preamble + 2·slot.
    AfterSilentRts,
}

/// Reporting of overheard data frames for other stations to the layer above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Tap {
    /// Frames for other stations only set the NAV.
    #[default]
    Off,
    /// Every decodable data frame is reported.
    Promiscuous,
}

/// Reason for which a configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A contention window is not 2ⁿ − 1, or the smaller is larger.
    #[error("contention windows must be of the form 2^n - 1 with cw_min <= cw_max, not {min} and {max}")]
    ContentionWindow {
        /// `cw_min`.
        min: u16,
        /// `cw_max`.
        max: u16,
    },
    /// A retry limit is 0.
    #[error("a retry limit must be at least 1")]
    RetryLimit,
    /// A block has no MSDU, or more than a bitmap has bits.
    #[error("a block holds 1 to 64 MSDUs, not {0}")]
    BlockSize(u8),
    /// DSSS and OFDM rates are mixed.
    #[error("data rate {data_mbps} Mb/s and basic rate {basic_mbps} Mb/s belong to different PHYs")]
    MixedRates {
        /// Data rate in Mb/s.
        data_mbps: String,
        /// Basic rate in Mb/s.
        basic_mbps: String,
    },
}

impl Config {
    /// 802.11b, 11 Mb/s data, 1 Mb/s basic, long preamble, RTS never, LLC and SNAP.
    #[must_use]
    pub fn dot11b() -> Self {
        Self {
            slot: Duration::from_micros(20),
            sifs: Duration::from_micros(10),
            cw_min: 31,
            cw_max: 1023,
            short_retry_limit: 7,
            long_retry_limit: 4,
            rts_threshold_bytes: 2347,
            data_rate: Rate::Cck11,
            basic_rate: Rate::Dsss1,
            preamble: Preamble::Long,
            data_extra_bytes: 8,
            ack_policy: AckPolicy::default(),
            no_ack_bytes: 0..=u32::MAX,
            burst_limit: None,
            msdu_lifetime: None,
            block_ack_timeout: None,
            block_ack_setup: BlockAckSetup::default(),
            first_access: FirstAccess::default(),
            eifs: EifsRule::default(),
            response_timeout: ResponseTimeout::default(),
            reservation: Reservation::default(),
            backoff_range: BackoffRange::default(),
            nav_reset: NavReset::default(),
            tap: Tap::default(),
        }
    }

    /// 802.11a, 54 Mb/s data, 6 Mb/s basic, RTS never, LLC/SNAP.
    #[must_use]
    pub fn dot11a() -> Self {
        Self {
            slot: Duration::from_micros(9),
            sifs: Duration::from_micros(16),
            cw_min: 15,
            data_rate: Rate::Ofdm54,
            basic_rate: Rate::Ofdm6,
            ..Self::dot11b()
        }
    }

    /// 802.11a at 54 Mb/s with the defaults of the MadWifi driver for best effort at an access point with at most one station
    /// (`net80211/ieee80211_proto.c` and `ath/if_ath.c` in its trunk of October 2007): aggressive mode,
    /// which has AIFSN 2 (DIFS), a TXOP of 64 · 32 µs and CWmin 7; ACKs and CTS at 6 Mb/s. An access point with two stations
    /// or more, and an ad-hoc station, has CWmin 15. Fast frames, which the driver joins where both ends are Atheros cards, are
    /// not modelled.
    #[must_use]
    pub fn madwifi() -> Self {
        Self { cw_min: 7, burst_limit: Some(Duration::from_micros(64 * 32)), ..Self::dot11a() }
    }

    /// ns-2.35's `Mac/802_11` as the CMU wireless scripts configure it: 2 Mb/s data, 1 Mb/s basic, RTS always,
    /// four addresses, and its departures from the standard.
    #[must_use]
    pub fn ns2_wavelan() -> Self {
        Self {
            rts_threshold_bytes: 0,
            data_rate: Rate::Dsss2,
            data_extra_bytes: 6,
            first_access: FirstAccess::AlwaysBackoff,
            eifs: EifsRule::AsNav,
            response_timeout: ResponseTimeout::WholeResponse,
            reservation: Reservation::MediumIdle,
            backoff_range: BackoffRange::Exclusive,
            ..Self::dot11b()
        }
    }

    /// ns-3.37's ad-hoc 802.11b as the reference chains of docs/validation.md use it: 2 Mb/s for data and control, RTS for
    /// data but not for TCP's ACKs, and its reading of an idle medium.
    #[must_use]
    pub fn ns3_wavelan() -> Self {
        Self {
            rts_threshold_bytes: 500,
            data_rate: Rate::Dsss2,
            basic_rate: Rate::Dsss2,
            first_access: FirstAccess::IdleOnArrival,
            ..Self::dot11b()
        }
    }

    /// 802.11b as the Neighborhood RED paper has it in QualNet: 2 Mb/s, RTS always. The rate of control frames was not published:
    /// 2 Mb/s as well.
    #[must_use]
    pub fn qualnet() -> Self {
        Self { rts_threshold_bytes: 0, data_rate: Rate::Dsss2, basic_rate: Rate::Dsss2, ..Self::dot11b() }
    }

    /// Checks that the values are consistent.
    ///
    /// # Errors
    /// The first [`ConfigError`] found.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let is_window = |cw: u16| cw > 0 && (cw + 1).is_power_of_two();
        if !is_window(self.cw_min) || !is_window(self.cw_max) || self.cw_min > self.cw_max {
            return Err(ConfigError::ContentionWindow { min: self.cw_min, max: self.cw_max });
        }
        if self.short_retry_limit == 0 || self.long_retry_limit == 0 {
            return Err(ConfigError::RetryLimit);
        }
        if let AckPolicy::BlockAck { block_size, .. } = self.ack_policy
            && !(1..=64).contains(&block_size)
        {
            return Err(ConfigError::BlockSize(block_size));
        }
        if self.data_rate.is_ofdm() != self.basic_rate.is_ofdm() {
            return Err(ConfigError::MixedRates {
                data_mbps: self.data_rate.mbps().to_string(),
                basic_mbps: self.basic_rate.mbps().to_string(),
            });
        }
        Ok(())
    }

    /// DIFS = SIFS + 2 slots (802.11-2020 §10.3.7).
    #[must_use]
    pub fn difs(&self) -> Duration {
        self.sifs + self.slot * 2
    }

    /// EIFS = SIFS + DIFS + an ACK at the lowest mandatory rate, whatever the basic rate (802.11-2020 §10.3.7).
    #[must_use]
    pub fn eifs(&self) -> Duration {
        let ack =
            self.basic_rate.lowest_mandatory().airtime(hopline_wire::dot11::ACK_LEN as u32, self.preamble);
        self.sifs + self.difs() + ack
    }

    /// aPHY-RX-START-Delay: from the start of a frame to its recognition. b: the preamble, 192 or 96 µs; a: 20 µs.
    #[must_use]
    pub const fn rx_start_delay(&self) -> Duration {
        if self.basic_rate.is_ofdm() { Duration::from_micros(20) } else { self.preamble.duration() }
    }

    /// Airtime of a control frame of `bytes` bytes.
    #[must_use]
    pub fn control_airtime(&self, bytes: usize) -> Duration {
        self.basic_rate.airtime(bytes as u32, self.preamble)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interframe_spaces_are_those_of_the_standard() {
        let b = Config::dot11b();
        assert_eq!((b.difs(), b.eifs()), (Duration::from_micros(50), Duration::from_micros(364)));
        let a = Config::dot11a();
        assert_eq!((a.difs(), a.eifs()), (Duration::from_micros(34), Duration::from_micros(94)));
    }

    #[test]
    fn eifs_is_the_same_at_every_basic_rate() {
        let b = Config { basic_rate: Rate::Dsss2, ..Config::dot11b() };
        assert_eq!(b.eifs(), Duration::from_micros(364));
        let a = Config { basic_rate: Rate::Ofdm24, ..Config::dot11a() };
        assert_eq!(a.eifs(), Duration::from_micros(94));
    }

    #[test]
    fn presets_are_valid() {
        let papers = [Config::ns2_wavelan(), Config::ns3_wavelan(), Config::qualnet(), Config::madwifi()];
        for c in [Config::dot11a(), Config::dot11b()].into_iter().chain(papers) {
            assert_eq!(c.validate(), Ok(()));
        }
    }

    #[test]
    fn invalid_values_are_refused() {
        let with = |change: &dyn Fn(&mut Config)| {
            let mut c = Config::dot11b();
            change(&mut c);
            c.validate()
        };
        assert_eq!(with(&|c| c.cw_min = 30), Err(ConfigError::ContentionWindow { min: 30, max: 1023 }));
        assert_eq!(with(&|c| c.cw_max = 15), Err(ConfigError::ContentionWindow { min: 31, max: 15 }));
        assert_eq!(with(&|c| c.long_retry_limit = 0), Err(ConfigError::RetryLimit));
        let blocks = |block_size| AckPolicy::BlockAck { block_size, txop_limit: None };
        assert_eq!(with(&|c| c.ack_policy = blocks(0)), Err(ConfigError::BlockSize(0)));
        assert_eq!(with(&|c| c.ack_policy = blocks(65)), Err(ConfigError::BlockSize(65)));
        assert_eq!(with(&|c| c.ack_policy = blocks(64)), Ok(()));
        assert!(matches!(with(&|c| c.basic_rate = Rate::Ofdm6), Err(ConfigError::MixedRates { .. })));
    }
}
