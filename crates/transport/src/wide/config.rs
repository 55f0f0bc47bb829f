//! Every parameter of a TPA-wide endpoint, with unit, range, default and effect. Unless noted otherwise the choice is
//! ours; `docs/protocols/tpa-wide.md` shows its effect on the results.

use crate::ConfigError;
use hopline_core::{Duration, settings};

settings! {
    /// Parameters of an [`Endpoint`](super::Endpoint). Start from [`Config::DEFAULT`] and use the setters. An endpoint checks the ranges
    /// when it is made; the error names the field and its range.
    ///
    /// # Example
    ///
    /// ```
    /// use hopline_core::Length;
    /// use hopline_transport::wide::{Config, Endpoint};
    /// use std::time::Duration;
    ///
    /// let config = Config::DEFAULT.with_mss(1200).with_time_wait(Duration::from_secs(3));
    /// assert!(Endpoint::<Length>::new(config).is_ok());
    /// let error = Endpoint::<Length>::new(config.with_mss(20)).expect_err("too small");
    /// assert_eq!(error.to_string(), "mss must be 64 to 65000");
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Config {
        /// Largest number of data bytes in a packet. Range 64–65 000, default 1437: a packet of IPv4 is then 1500 bytes long.
        mss, with_mss: u16,
        /// Received data kept for the user, in order and not, bytes. At least four full packets; default 16 MiB.
        receive_buffer, with_receive_buffer: u64,
        /// Initial part of the receive buffer that the peer may use, bytes. It grows by 64 times the bytes that the user has
        /// read, so that a peer cannot fill memory without delivering data. At least four full packets; default 16 MiB: the
        /// whole buffer from the beginning.
        initial_receive_window, with_initial_receive_window: u64,
        /// Data accepted from the user and not yet acknowledged, bytes. `None` (default): no limit.
        send_buffer, with_send_buffer: Option<u64>,
        /// Acknowledgment policy.
        ack, with_ack: AckConfig,
        /// Loss detection.
        loss_detection, with_loss_detection: LossDetectionConfig,
        /// Rate control.
        control, with_control: ControlConfig,
        /// Time-outs and reactions to silence.
        silence, with_silence: TimeoutConfig,
        /// Time for which the end that closed first answers late packets. Default 10 s.
        time_wait, with_time_wait: Duration as into,
        /// Delay before the first retransmission of the opening; it doubles each time. Above zero, default 200 ms. It can be
        /// short, since the round-trip time is known whichever transmission is answered.
        opening_rto, with_opening_rto: Duration as into,
        /// Number of retransmissions of the opening before giving up; `None`: unlimited. Default 8: 100 s.
        opening_retries, with_opening_retries: Option<u32>,
        /// Largest time by which a packet may be sent early. Packets due within this time are sent together, and then none
        /// until the next is due. 0 to 1 ms, default 0. Above zero for hosts with late timers, and where a GSO burst costs no
        /// more than a packet; the path has to hold as much more.
        pace_ahead, with_pace_ahead: Duration as into,
        /// Largest delay of a packet that the following packets make up for. 0 to 10 ms, default 1 ms, since timers are not
        /// exact. More for hosts with late timers; the path has to hold as much more.
        catch_up, with_catch_up: Duration as into,
        /// Keep-alive interval: silence after which the peer is probed; `None` (default): never.
        keep_alive, with_keep_alive: Option<Duration>,
    }
}

settings! {
    /// Acknowledgment policy of a receiver. The sender marks each packet as urgent or not, since it knows the losses and the
    /// packet rate.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct AckConfig {
        /// Packets per acknowledgment. At least 1, default 4.
        every, with_every: u32,
        /// Longest delay of the acknowledgment of an urgent packet, or of a packet after a gap. Default 5 ms.
        delay, with_delay: Duration as into,
        /// Longest delay of the acknowledgment of other packets. At least `delay`, default 200 ms.
        relaxed_delay, with_relaxed_delay: Duration as into,
        /// Packets per acknowledgment at low packet rates, as [`low_rate_interval`](Self::low_rate_interval) says. On a channel that data and
        /// acknowledgments share, an acknowledgment costs a quarter of a packet or more. The sender assumes the same value at
        /// its peer. At least 1, default 8.
        low_rate_every, with_low_rate_every: u32,
        /// Packet interval above which packets are rare. Default 12 ms: 1 Mb/s in full packets.
        low_rate_interval, with_low_rate_interval: Duration as into,
        /// Baseline loss rate below which few packets are urgent, if [`every`](Self::every) packets take longer than twice
        /// [`delay`](Self::delay). 0–1, default 0.1.
        relaxed_max_loss, with_relaxed_max_loss: f64,
    }
}

settings! {
    /// Parameters of loss detection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LossDetectionConfig {
        /// Divisor of the minimum round-trip time that gives the reordering window without reordering. At least 1, default 8.
        reordering_divisor, with_reordering_divisor: u32,
    }
}

settings! {
    /// Parameters of time-outs and of the reactions to silence.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TimeoutConfig {
        /// Time-out before the first round-trip sample. Above zero, default 1 s (RFC 6298 §2).
        initial, with_initial: Duration as into,
        /// Least time-out. Default 50 ms.
        min, with_min: Duration as into,
        /// Longest interval between two probes of a silent path. Default 500 ms.
        probe_max, with_probe_max: Duration as into,
        /// Longest outage after which the estimates of the path are kept. Default 3 s.
        keep_estimates, with_keep_estimates: Duration as into,
        /// Longest silence of a peer that has to answer; `None`: unlimited. Default 120 s, as TPA.
        limit, with_limit: Option<Duration>,
    }
}

settings! {
    /// Parameters of rate control.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ControlConfig {
        /// Initial window, packets. 1–100, default 10 (RFC 6928).
        initial_window, with_initial_window: u32,
        /// Fixed part of the standing queue above which the path is congested; [`queue_packets`](Self::queue_packets) is the
        /// other part. Above zero, default 1.5 ms. The sum stays below the target of CoDel (5 ms), so that CoDel need not
        /// drop packets of competing flows.
        queue_high, with_queue_high: Duration as into,
        /// Part of that bound in packets of the flow, as the time that they take. A slow flow tolerates a longer queue than a
        /// fast one, so that their rates converge. Default 2.5.
        queue_packets, with_queue_packets: f64,
        /// Standing queue below which the path counts as empty, as a share of the bound for congestion. 0–1, default 0.2.
        queue_low, with_queue_low: f64,
        /// Weight of delay jitter that is not attributed to a queue. Not negative, 0: none, 4: as much as uniform jitter
        /// explains, default 8.
        jitter, with_jitter: f64,
        /// Factor of the rate after congestion. 0–1, default 0.98.
        decrease_factor, with_decrease_factor: f64,
        /// Drain gain: share of the reduced rate while a queue drains, and share of the rate while losses are tested. 0–1, default 0.75.
        drain_gain, with_drain_gain: f64,
        /// Growth interval: in the first round trip without queue the rate grows by one packet per interval, per interval,
        /// independent of the rate, so that flows converge. In each following round trip the step doubles. Also the least
        /// duration of a round trip that counts for competing traffic. Above zero, default 35 ms.
        growth_interval, with_growth_interval: Duration as into,
        /// Largest first step of growth, as a share of the rate. The last step at most doubles the rate. 0–1, default 0.125.
        growth_max, with_growth_max: f64,
        /// Headroom above what the path has carried: largest sending rate as a multiple of the recent delivery rate corrected for the
        /// baseline loss rate, and largest volume in flight in bandwidth-delay products. A link that is faster than the rate by more than that starts
        /// Startup again. At least 1, default 2.
        headroom, with_headroom: f64,
        /// Loss threshold: standard deviations above the baseline from which on losses indicate congestion. Default 2.5.
        loss_threshold, with_loss_threshold: f64,
        /// Largest loss rate that is attributed to the path without an observation. A full queue drops packets, a short one does not:
        /// losses while the queue is short are the path's, whatever their rate. 0–1, default 0.05.
        max_unobserved_loss, with_max_unobserved_loss: f64,
        /// Detection of competing flows that fill the queue.
        competing, with_competing: CompetingConfig,
    }
}

settings! {
    /// Detection of competing flows that keep the queue full, and the competitive mode, which uses a window as theirs.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct CompetingConfig {
        /// Number of consecutive drains without relief that indicate competing traffic. At least 1, default 4.
        futile_drains, with_futile_drains: u32,
        /// Drain fraction: a drain brings relief if less than this share of the queue is left. 0–1, default 0.8.
        drain_fraction, with_drain_fraction: f64,
        /// Round trips with a queue and without a drain, before the rate is reduced as a probe for competing traffic. A queue that stands
        /// for as many round trips as [`futile_drains`](Self::futile_drains) probes take, and is drained as often in between, also
        /// indicates competing traffic. Also the round trips until losses above
        /// [`max_unobserved_loss`](ControlConfig::max_unobserved_loss) are first tested. At least 1, default 8.
        probe_rounds, with_probe_rounds: u32,
    }
}

impl Config {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        mss: 1437,
        receive_buffer: 16 << 20,
        initial_receive_window: 16 << 20,
        send_buffer: None,
        ack: AckConfig {
            every: 4,
            delay: Duration::from_millis(5),
            relaxed_delay: Duration::from_millis(200),
            low_rate_every: 8,
            low_rate_interval: Duration::from_millis(12),
            relaxed_max_loss: 0.1,
        },
        loss_detection: LossDetectionConfig { reordering_divisor: 8 },
        control: ControlConfig {
            initial_window: 10,
            queue_high: Duration::from_micros(1500),
            queue_packets: 2.5,
            queue_low: 0.2,
            jitter: 8.0,
            decrease_factor: 0.98,
            drain_gain: 0.75,
            growth_interval: Duration::from_millis(35),
            growth_max: 0.125,
            headroom: 2.0,
            loss_threshold: 2.5,
            max_unobserved_loss: 0.05,
            competing: CompetingConfig { futile_drains: 4, drain_fraction: 0.8, probe_rounds: 8 },
        },
        silence: TimeoutConfig {
            initial: Duration::from_secs(1),
            min: Duration::from_millis(50),
            probe_max: Duration::from_millis(500),
            keep_estimates: Duration::from_secs(3),
            limit: Some(Duration::from_secs(120)),
        },
        time_wait: Duration::from_secs(10),
        opening_rto: Duration::from_millis(200),
        opening_retries: Some(8),
        pace_ahead: Duration::ZERO,
        catch_up: Duration::from_millis(1),
        keep_alive: None,
    };

    /// Sets [`TimeoutConfig::limit`] of [`silence`](Self::silence): longest silence of a peer that has to answer; `None`:
    /// unlimited.
    #[must_use]
    pub const fn with_silence_limit(self, limit: Option<Duration>) -> Self {
        let silence = self.silence;
        self.with_silence(silence.with_limit(limit))
    }

    /// Checks every parameter against its range.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let check = |ok, field, must| if ok { Ok(()) } else { Err(ConfigError { field, requirement: must }) };
        let share = |x: f64| x > 0.0 && x <= 1.0;
        let (control, silence) = (&self.control, &self.silence);
        check((64..=65_000).contains(&self.mss), "mss", "64 to 65000")?;
        check(
            self.receive_buffer >= 4 * u64::from(self.mss),
            "receive_buffer",
            "at least four full packets",
        )?;
        check(
            self.initial_receive_window >= 4 * u64::from(self.mss),
            "initial_receive_window",
            "at least four full packets",
        )?;
        check(self.receive_buffer < 1 << 31, "receive_buffer", "below 2 GiB")?;
        check(self.ack.every > 0, "ack.every", "at least 1")?;
        check(self.ack.low_rate_every > 0, "ack.low_rate_every", "at least 1")?;
        check(self.ack.relaxed_delay >= self.ack.delay, "ack.relaxed_delay", "at least ack.delay")?;
        check(self.loss_detection.reordering_divisor > 0, "loss_detection.reordering_divisor", "at least 1")?;
        check((1..=100).contains(&control.initial_window), "initial_window", "1 to 100")?;
        check(control.queue_high > Duration::ZERO, "queue_high", "above zero")?;
        check(control.queue_packets >= 0.0, "queue_packets", "not negative")?;
        check(share(control.queue_low), "queue_low", "above 0 and at most 1")?;
        check(control.jitter >= 0.0, "jitter", "not negative")?;
        check(share(control.decrease_factor), "decrease_factor", "above 0 and at most 1")?;
        check(share(control.drain_gain), "drain_gain", "above 0 and at most 1")?;
        check(control.growth_interval > Duration::ZERO, "growth_interval", "above zero")?;
        check(share(control.growth_max), "growth_max", "above 0 and at most 1")?;
        let competing = &control.competing;
        check(competing.futile_drains > 0, "competing.futile_drains", "at least 1")?;
        check(share(competing.drain_fraction), "competing.drain_fraction", "above 0 and at most 1")?;
        check(competing.probe_rounds > 0, "competing.probe_rounds", "at least 1")?;
        check(control.headroom >= 1.0, "headroom", "at least 1")?;
        check(control.loss_threshold >= 0.0, "loss_threshold", "not negative")?;
        check((0.0..=1.0).contains(&control.max_unobserved_loss), "max_unobserved_loss", "0 to 1")?;
        check((0.0..=1.0).contains(&self.ack.relaxed_max_loss), "ack.relaxed_max_loss", "0 to 1")?;
        check(self.opening_rto > Duration::ZERO, "opening_rto", "above zero")?;
        check(self.pace_ahead <= Duration::from_millis(1), "pace_ahead", "at most 1 ms")?;
        check(self.catch_up <= Duration::from_millis(10), "catch_up", "at most 10 ms")?;
        check(silence.initial > Duration::ZERO, "silence.initial", "above zero")?;
        check(silence.min > Duration::ZERO, "silence.min", "above zero")?;
        check(silence.probe_max >= silence.min, "silence.probe_max", "at least silence.min")?;
        check(silence.limit != Some(Duration::ZERO), "silence.limit", "above zero")?;
        check(self.keep_alive != Some(Duration::ZERO), "keep_alive", "above zero")
    }
}
