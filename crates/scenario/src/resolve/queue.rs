//! `[queue]` and `link.queue`.

use super::super::keys;
use super::super::schema::Section;
use super::super::user_defined::named;
use super::reject_foreign_keys;
use hopline_config::source::Problem;
use hopline_core::Duration;
use hopline_queue::dual_pi2::Scheduler;
use hopline_queue::pie::{Activation, CapDropAdjustment, DelayEstimate, Derandomization};
use hopline_queue::red::{Gentle, IdlePolicy, Measure};
use hopline_queue::{
    CoDelConfig, DropTail, DualPi2Config, FqCoDelConfig, PieConfig, RedConfig, Service, SignalAction,
};
use hopline_sim::custom::{AlgorithmKind, CustomAlgorithms};
use hopline_sim::spec::{Discipline, QueueSpec};
use std::num::NonZeroU16;

/// First come, first served, 50 packets.
pub(super) const PLAIN: QueueSpec = QueueSpec {
    capacity: DropTail::<()>::DEFAULT_CAPACITY,
    service_order: Service::Fifo,
    discipline: Discipline::DropTail,
};

/// ns-2's interface queue.
pub(super) const NS2: QueueSpec =
    QueueSpec { capacity: DropTail::<()>::NS2_CAPACITY, service_order: Service::RoutingPriority, ..PLAIN };

/// The buffers of the Neighborhood RED paper: 66 packets.
pub(super) const QUALNET: QueueSpec = QueueSpec { capacity: keys::QUALNET_CAPACITY, ..PLAIN };

/// Keys of a queue with RED, beside those of every queue.
const RED_KEYS: &[&str] = &[
    "min_threshold_packets",
    "max_threshold_packets",
    "weight",
    "max_probability",
    "measure",
    "gentle",
    "idle_packet_ms",
];
/// Keys of a queue with CoDel, beside those of every queue.
const CODEL_KEYS: &[&str] = &["interval_ms", "packet_bytes"];
const FQ_KEYS: &[&str] = &["flows", "quantum_bytes"];
/// Keys of a queue with PIE, beside those of every queue.
const PIE_KEYS: &[&str] = &[
    "max_burst_ms",
    "mark_threshold",
    "delay_estimate",
    "dequeue_threshold_bytes",
    "activation_share",
    "derandomization",
    "cap_drop_adjustment",
];

/// Keys of both PI controllers.
const PI_KEYS: &[&str] = &["update_interval_ms", "alpha_hz", "beta_hz"];
/// Keys of DualPI2, beside those of every queue.
const DUAL_PI2_KEYS: &[&str] = &[
    "coupling_factor",
    "l4s_threshold_ms",
    "l4s_ramp_ms",
    "l4s_min_backlog_packets",
    "scheduler",
    "classic_weight",
    "time_shift_ms",
];

/// Returns `preset` with what `section` puts over it.
pub(super) fn resolve(
    preset: QueueSpec,
    section: Section<'_>,
    machines: &CustomAlgorithms,
) -> Result<QueueSpec, Problem> {
    let mut config = preset;
    config.capacity = at_least_one(&section, "capacity_packets").unwrap_or(config.capacity);
    section.set_if_given(keys::queue::SERVICE, &mut config.service_order);
    let discipline = section.word("discipline").unwrap_or("drop-tail");
    reject_foreign_keys(
        &section,
        "discipline",
        discipline,
        &[
            (&["red"], RED_KEYS),
            (&["codel", "fq-codel"], CODEL_KEYS),
            (&["fq-codel"], FQ_KEYS),
            (&["codel", "fq-codel", "pie", "dualpi2"], &["target_ms"]),
            (&["red", "pie"], &["mean_packet_bytes"]),
            (&["pie", "dualpi2"], PI_KEYS),
            (&["pie"], PIE_KEYS),
            (&["dualpi2"], DUAL_PI2_KEYS),
            (&["red", "codel", "fq-codel", "pie"], &["action"]),
            (&["drop-tail", "red", "codel", "pie"], &["service"]),
        ],
    )?;
    let own =
        named(section, "discipline", machines, AlgorithmKind::Discipline, |name| machines.discipline(name))?;
    config.discipline = match discipline {
        "red" => Discipline::Red(red(&section)?),
        "codel" => Discipline::CoDel(codel(&section)?),
        "fq-codel" => Discipline::FqCoDel(fq_codel(&section)?),
        "pie" => Discipline::Pie(pie(&section)?),
        "dualpi2" => Discipline::DualPi2(dual_pi2(&section)?),
        _drop_tail_or_own => own.map_or(Discipline::DropTail, Discipline::Custom),
    };
    Ok(config)
}

/// Returns a number with a range above zero.
fn at_least_one(section: &Section<'_>, key: &str) -> Option<NonZeroU16> {
    NonZeroU16::new(section.integer_as(key)?)
}

fn action(section: &Section<'_>) -> SignalAction {
    section.get(keys::queue::ACTION).unwrap_or(SignalAction::Drop)
}

fn codel(section: &Section<'_>) -> Result<CoDelConfig, Problem> {
    let mut codel = CoDelConfig { action: action(section), ..CoDelConfig::RFC8289 };
    set_times(section, [("target_ms", &mut codel.target), ("interval_ms", &mut codel.interval)]);
    codel.packet_bytes = section.integer_u32("packet_bytes").unwrap_or(codel.packet_bytes);
    codel.validate().map_err(|must| Problem::new(format!("CoDel wants {must}")).at(section.origin))?;
    Ok(codel)
}

/// Sets times in milliseconds that the section has.
fn set_times<const N: usize>(section: &Section<'_>, fields: [(&str, &mut Duration); N]) {
    for (key, field) in fields {
        *field = section.number(key).map_or(*field, |ms| Duration::from_secs_f64(ms * 1e-3));
    }
}

/// Sets numbers that the section has.
fn set_numbers<const N: usize>(section: &Section<'_>, fields: [(&str, &mut f64); N]) {
    for (key, field) in fields {
        *field = section.number(key).unwrap_or(*field);
    }
}

fn dual_pi2(section: &Section<'_>) -> Result<DualPi2Config, Problem> {
    let mut dual = DualPi2Config::RFC9332;
    set_times(
        section,
        [
            ("target_ms", &mut dual.target),
            ("update_interval_ms", &mut dual.update_interval),
            ("l4s_threshold_ms", &mut dual.l4s_threshold),
            ("l4s_ramp_ms", &mut dual.l4s_ramp),
        ],
    );
    set_numbers(
        section,
        [
            ("alpha_hz", &mut dual.alpha_hz),
            ("beta_hz", &mut dual.beta_hz),
            ("coupling_factor", &mut dual.coupling),
        ],
    );
    dual.l4s_min_backlog_packets =
        section.integer_as("l4s_min_backlog_packets").unwrap_or(dual.l4s_min_backlog_packets);
    let scheduler = section.word("scheduler").unwrap_or("wrr");
    reject_foreign_keys(
        section,
        "scheduler",
        scheduler,
        &[(&["wrr"], &["classic_weight"]), (&["ts-fifo"], &["time_shift_ms"])],
    )?;
    if scheduler == "ts-fifo" {
        let mut shift = DualPi2Config::TIME_SHIFT;
        set_times(section, [("time_shift_ms", &mut shift)]);
        dual.scheduler = Scheduler::TimeShiftedFifo { shift };
    } else if let Some(classic_weight) = section.number("classic_weight") {
        dual.scheduler = Scheduler::WeightedRoundRobin { classic_weight };
    }
    dual.validate().map_err(|must| Problem::new(format!("DualPI2 wants {must}")).at(section.origin))?;
    Ok(dual)
}

fn pie(section: &Section<'_>) -> Result<PieConfig, Problem> {
    let mut pie = PieConfig { action: action(section), ..PieConfig::RFC8033 };
    set_times(
        section,
        [
            ("target_ms", &mut pie.target),
            ("update_interval_ms", &mut pie.update_interval),
            ("max_burst_ms", &mut pie.max_burst),
        ],
    );
    set_numbers(
        section,
        [
            ("alpha_hz", &mut pie.alpha_hz),
            ("beta_hz", &mut pie.beta_hz),
            ("mark_threshold", &mut pie.mark_threshold),
        ],
    );
    pie.mean_packet_bytes = section.integer_u32("mean_packet_bytes").unwrap_or(pie.mean_packet_bytes);
    let estimate = section.word("delay_estimate").unwrap_or("timestamps");
    reject_foreign_keys(
        section,
        "delay_estimate",
        estimate,
        &[(&["dequeue-rate"], &["dequeue_threshold_bytes"])],
    )?;
    if estimate == "dequeue-rate" {
        let threshold_bytes =
            section.integer_u32("dequeue_threshold_bytes").unwrap_or(PieConfig::DEQUEUE_THRESHOLD_BYTES);
        pie.delay_estimate = DelayEstimate::DequeueRate { threshold_bytes };
    }
    if let Some(share) = section.number("activation_share").filter(|share| *share > 0.0) {
        pie.activation = Activation::AboveOccupancy { share };
    }
    if section.flag("derandomization") == Some(true) {
        pie.derandomization = Derandomization::On;
    }
    if section.flag("cap_drop_adjustment") == Some(true) {
        pie.cap_drop_adjustment = CapDropAdjustment::On;
    }
    pie.validate().map_err(|must| Problem::new(format!("PIE wants {must}")).at(section.origin))?;
    Ok(pie)
}

fn fq_codel(section: &Section<'_>) -> Result<FqCoDelConfig, Problem> {
    let mut fq = FqCoDelConfig { codel: codel(section)?, ..FqCoDelConfig::RFC8290 };
    fq.flows = at_least_one(section, "flows").unwrap_or(fq.flows);
    fq.quantum_bytes = section.integer_u32("quantum_bytes").unwrap_or(fq.quantum_bytes);
    Ok(fq)
}

fn red(section: &Section<'_>) -> Result<RedConfig, Problem> {
    let mut red = RedConfig::PAPER;
    set_numbers(
        section,
        [
            ("min_threshold_packets", &mut red.min_threshold),
            ("max_threshold_packets", &mut red.max_threshold),
            ("weight", &mut red.weight),
            ("max_probability", &mut red.max_probability),
        ],
    );
    let in_bytes = section.word("measure") == Some("bytes");
    let measure = if in_bytes { "bytes" } else { "packets" };
    reject_foreign_keys(section, "measure", measure, &[(&["bytes"], &["mean_packet_bytes"])])?;
    if in_bytes {
        red.measure = Measure::Bytes {
            packet_bytes: section.integer_u32("mean_packet_bytes").unwrap_or(keys::RED_PACKET_BYTES),
        };
    }
    if section.flag("gentle") == Some(true) {
        red.gentle = Gentle::On;
    }
    if let Some(ms) = section.number("idle_packet_ms") {
        let packet_time = Duration::from_secs_f64(ms * 1e-3);
        red.idle = if packet_time.is_zero() { IdlePolicy::Keep } else { IdlePolicy::Decay { packet_time } };
    }
    red.action = action(section);
    red.validate().map_err(|must| Problem::new(format!("RED wants {must}")).at(section.origin))?;
    Ok(red)
}
