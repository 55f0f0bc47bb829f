//! Every parameter of a TPA-wide endpoint, with unit, range, default and effect. Where nothing else is said, the choice is ours, and
//! `docs/protocols/tpa-wide.md` has what it does to the figures.

use crate::ConfigError;
use hopline_core::Duration;

/// Parameters of an [`Endpoint`](super::Endpoint). Start from [`Config::DEFAULT`] and change fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Most bytes of data in a packet. Range 64–65 000, default 1437: a packet of IPv4 is then 1500 bytes long.
    pub mss: u16,
    /// Received data kept for the user, in order and not, bytes. At least four full packets; default 16 MiB.
    pub receive_buffer: u64,
    /// Part of it that the peer may use at first, bytes: it may use 64 times what the user has read in addition, so that a peer cannot fill
    /// memory that it has not earned. At least four full packets; default 16 MiB: all from the beginning.
    pub receive_start: u64,
    /// Data taken from the user and not yet acknowledged, bytes. `None` (default): no limit.
    pub send_buffer: Option<u64>,
    /// When to acknowledge.
    pub ack: AckConfig,
    /// When a packet is taken for lost.
    pub detect: DetectConfig,
    /// How fast to send.
    pub control: ControlConfig,
    /// What silence brings about.
    pub silence: SilenceConfig,
    /// How long the end that closed first answers late packets. Default 10 s.
    pub time_wait: Duration,
    /// How soon the opening is repeated; each time twice as long. Above zero, default 200 ms: it is short, and its round trip is known
    /// whichever is answered.
    pub open_again: Duration,
    /// How often the opening is repeated before giving up; `None`: without end. Default 8: 100 s.
    pub opening_retries: Option<u32>,
    /// How long before its time a packet may leave: what is due within so long leaves together, and then nothing until it is due. 0 to 1 ms,
    /// default 0. Above zero where clocks wake late and a train of packets costs no more than one; the path has to hold as much more.
    pub pace_ahead: Duration,
    /// Time by which a packet may leave late without holding up those after it: they make up for it, together. 0 to 10 ms, default 1 ms, as clocks are
    /// not exact. More where threads wake late; the path has to hold as much more.
    pub catch_up: Duration,
    /// Silence after which the peer is asked for a sign of life; `None` (default): never.
    pub keep_alive: Option<Duration>,
}

/// When a receiver acknowledges: the sender says of each packet whether it is urgent, as it knows what is lost and how rare packets are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckConfig {
    /// Packets for one acknowledgment. At least 1, default 4.
    pub every: u32,
    /// How long an urgent packet, or one before which others are missing, may wait for its acknowledgment. Default 5 ms.
    pub delay: Duration,
    /// The same for others. At least that, default 200 ms.
    pub late: Duration,
    /// Packets for one acknowledgment where they are [`rare`](Self::rare): on a channel that data and acknowledgments share, these cost
    /// a quarter of a packet each, or more. The sender counts on its peer to have the same. At least 1, default 8.
    pub rare_every: u32,
    /// Packets are rare where they leave no closer together than this. Default 12 ms: 1 Mb/s in full packets.
    pub rare: Duration,
    /// Where less than this share is usually lost, and [`every`](Self::every) packets take longer than twice [`delay`](Self::delay), few are
    /// urgent. 0–1, default 0.1.
    pub calm: f64,
}

/// When a packet is taken for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetectConfig {
    /// The reordering window is the least round trip divided by this, while nothing comes late. At least 1, default 8.
    pub share: u32,
}

/// What silence brings about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceConfig {
    /// Time-out before the first round trip is known. Above zero, default 1 s (RFC 6298 §2).
    pub initial: Duration,
    /// Least time-out. Default 50 ms.
    pub min: Duration,
    /// Most time between two probes of a path that is silent. Default 500 ms.
    pub probe_max: Duration,
    /// An outage of at most this leaves what is known of the path as it was. Default 3 s.
    pub keeps: Duration,
    /// How long the peer may be silent while something is due from it; `None`: for ever. Default 120 s, as TPA.
    pub limit: Option<Duration>,
}

/// How fast to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlConfig {
    /// Packets sent before anything is known of the path. 1–100, default 10 (RFC 6928).
    pub initial_window: u32,
    /// Standing queue above which the path is congested, apart from [`queue_packets`](Self::queue_packets). Above zero, default 1.5 ms: with the
    /// packets it stays below what CoDel bears (5 ms), so that CoDel need not drop the packets of others.
    pub queue_high: Duration,
    /// To it come so many packets of the flow, in the time between them: a slow flow bears more of a queue than a fast one, and so
    /// they become equal. Default 2.5.
    pub queue_packets: f64,
    /// Standing queue below which there is none: share of the other bound. 0–1, default 0.2.
    pub queue_low: f64,
    /// How much of what jitter does to delays is not taken for a queue. Not negative, 0: nothing, 4: what uniform jitter explains, default 8.
    pub jitter: f64,
    /// What congestion leaves of the rate. 0–1, default 0.98.
    pub keep: f64,
    /// Share of that rate at which a queue is drained. 0–1, default 0.75.
    pub drain: f64,
    /// How long it is drained at most, in round trips. Default 6.
    pub drain_rounds: u32,
    /// In the first round trip without queue the rate grows by a packet in this time, in this time, whatever the rate: so that flows become equal. In
    /// each further one by twice as much. Above zero, default 35 ms.
    pub growth: Duration,
    /// Share of the rate by which it grows in a round trip at most, in the first half of that. 0–1, default 0.25.
    pub growth_max: f64,
    /// How much more than what arrived of late, with the usual losses, may be sent. At least 1, default 1.5.
    pub ahead: f64,
    /// Bandwidth-delay products that may be in flight. At least 1, default 2.
    pub in_flight: f64,
    /// Packets that may be in flight beyond them: what the peer acknowledges together. At least 1, default 4.
    pub spare: f64,
    /// Standard deviations beyond the usual from which on losses tell of congestion. Default 2.5.
    pub excess: f64,
    /// What losses are believed to be the path's.
    pub trust: TrustConfig,
    /// When others fill the queue.
    pub rivals: RivalsConfig,
}

/// When a queue is taken for that of others who fill it whatever we do, and what then: a window as theirs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RivalsConfig {
    /// Drains in a row that relieve nothing, before it is. At least 1, default 6.
    pub undrained: u32,
    /// A drain relieves if less than this share of the queue is left. 0–1, default 0.8.
    pub relief: f64,
    /// Round trips, of 50 ms at least, with a queue but no drain, after which less is sent, to see whose it is. At least 1, default 8.
    pub look: u32,
    /// A queue that stands for so many round trips is others', too, if it was drained [`undrained`](Self::undrained) times in
    /// between. At least 1, default 20.
    pub standing: u32,
    /// Round trips for which the sender competes at once. At least 1, default 192.
    pub turn: u32,
}

/// Whose losses they are believed to be: among many who lose to one full queue, whoever sends a little less sees no difference, and so
/// much is believed only with a proof. A queue has drained, and losses stayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrustConfig {
    /// More than this share is not believed to be the path's without a proof. 0–1, default 0.05.
    pub unproven: f64,
    /// For so long a proof holds, or for 256 round trips if these are longer. Default 15 s.
    pub proof: Duration,
    /// For so long more is believed before the first proof, and again after a time without that is three times as long: else a proof could be out
    /// of reach. Or for 64 round trips if these are longer. Default 3 s.
    pub credit: Duration,
    /// What losses that are not believed leave of the rate at least. 0–1, default 0.25.
    pub floor: f64,
    /// [`ahead`](ControlConfig::ahead) without a proof. At least 1, default 1.1.
    pub ahead: f64,
    /// A test of the losses goes on until the logarithm of how much likelier one cause is than the other is this. Not negative, default 0.5.
    pub decided: f64,
}

impl Config {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        mss: 1437,
        receive_buffer: 16 << 20,
        receive_start: 16 << 20,
        send_buffer: None,
        ack: AckConfig {
            every: 4,
            delay: Duration::from_millis(5),
            late: Duration::from_millis(200),
            rare_every: 8,
            rare: Duration::from_millis(12),
            calm: 0.1,
        },
        detect: DetectConfig { share: 8 },
        control: ControlConfig {
            initial_window: 10,
            queue_high: Duration::from_micros(1500),
            queue_packets: 2.5,
            queue_low: 0.2,
            jitter: 8.0,
            keep: 0.98,
            drain: 0.75,
            drain_rounds: 6,
            growth: Duration::from_millis(35),
            growth_max: 0.25,
            ahead: 1.5,
            in_flight: 2.0,
            spare: 4.0,
            excess: 2.5,
            trust: TrustConfig {
                unproven: 0.05,
                proof: Duration::from_secs(15),
                credit: Duration::from_secs(3),
                floor: 0.25,
                ahead: 1.1,
                decided: 0.5,
            },
            rivals: RivalsConfig { undrained: 6, relief: 0.8, look: 8, standing: 20, turn: 192 },
        },
        silence: SilenceConfig {
            initial: Duration::from_secs(1),
            min: Duration::from_millis(50),
            probe_max: Duration::from_millis(500),
            keeps: Duration::from_secs(3),
            limit: Some(Duration::from_secs(120)),
        },
        time_wait: Duration::from_secs(10),
        open_again: Duration::from_millis(200),
        opening_retries: Some(8),
        pace_ahead: Duration::ZERO,
        catch_up: Duration::from_millis(1),
        keep_alive: None,
    };

    /// Whether every parameter is in its range.
    ///
    /// # Errors
    /// The first parameter that is not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let check = |ok, field, must| if ok { Ok(()) } else { Err(ConfigError { field, must }) };
        let share = |x: f64| x > 0.0 && x <= 1.0;
        let (control, silence) = (&self.control, &self.silence);
        check((64..=65_000).contains(&self.mss), "mss", "64 to 65000")?;
        check(
            self.receive_buffer >= 4 * u64::from(self.mss),
            "receive_buffer",
            "at least four full packets",
        )?;
        check(self.receive_start >= 4 * u64::from(self.mss), "receive_start", "at least four full packets")?;
        check(self.receive_buffer < 1 << 31, "receive_buffer", "below 2 GiB")?;
        check(self.ack.every > 0, "ack.every", "at least 1")?;
        check(self.ack.rare_every > 0, "ack.rare_every", "at least 1")?;
        check(self.ack.late >= self.ack.delay, "ack.late", "at least ack.delay")?;
        check(self.detect.share > 0, "detect.share", "at least 1")?;
        check((1..=100).contains(&control.initial_window), "initial_window", "1 to 100")?;
        check(control.queue_high > Duration::ZERO, "queue_high", "above zero")?;
        check(control.queue_packets >= 0.0, "queue_packets", "not negative")?;
        check(share(control.queue_low), "queue_low", "above 0 and at most 1")?;
        check(control.jitter >= 0.0, "jitter", "not negative")?;
        check(share(control.keep), "keep", "above 0 and at most 1")?;
        check(share(control.drain), "drain", "above 0 and at most 1")?;
        check(control.growth > Duration::ZERO, "growth", "above zero")?;
        check(share(control.growth_max), "growth_max", "above 0 and at most 1")?;
        let rivals = &control.rivals;
        check(rivals.undrained > 0, "rivals.undrained", "at least 1")?;
        check(share(rivals.relief), "rivals.relief", "above 0 and at most 1")?;
        check(rivals.look > 0, "rivals.look", "at least 1")?;
        check(rivals.standing > 0, "rivals.standing", "at least 1")?;
        check(rivals.turn > 0, "rivals.turn", "at least 1")?;
        check(control.ahead >= 1.0, "ahead", "at least 1")?;
        check(control.in_flight >= 1.0, "in_flight", "at least 1")?;
        check(control.spare >= 1.0, "spare", "at least 1")?;
        check(control.excess >= 0.0, "excess", "not negative")?;
        let trust = &control.trust;
        check((0.0..=1.0).contains(&trust.unproven), "trust.unproven", "0 to 1")?;
        check((0.0..=1.0).contains(&trust.floor), "trust.floor", "0 to 1")?;
        check(trust.ahead >= 1.0, "trust.ahead", "at least 1")?;
        check(trust.decided >= 0.0, "trust.decided", "not negative")?;
        check((0.0..=1.0).contains(&self.ack.calm), "ack.calm", "0 to 1")?;
        check(self.open_again > Duration::ZERO, "open_again", "above zero")?;
        check(self.pace_ahead <= Duration::from_millis(1), "pace_ahead", "at most 1 ms")?;
        check(self.catch_up <= Duration::from_millis(10), "catch_up", "at most 10 ms")?;
        check(silence.initial > Duration::ZERO, "silence.initial", "above zero")?;
        check(silence.min > Duration::ZERO, "silence.min", "above zero")?;
        check(silence.probe_max >= silence.min, "silence.probe_max", "at least silence.min")?;
        check(silence.limit != Some(Duration::ZERO), "silence.limit", "above zero")?;
        check(self.keep_alive != Some(Duration::ZERO), "keep_alive", "above zero")
    }
}
