//! `[radio]` and `[mac]`.

use super::super::keys::{self, Protocol, RadioPreset};
use super::super::schema::Section;
use super::super::user_defined::ScenarioWithMachines;
use super::{Names, OwnedKeys, jitter, links, node_named, obstacles, queue, reject_foreign_keys};
use hopline_config::source::{Origin, Problem};
use hopline_core::Duration;
use hopline_radio::mac::config::{self as mac, AckPolicy};
use hopline_radio::phy::propagation::{
    LogDistance, Propagation, RangeDisk, Shadowing, ShadowingDraw, dbm_to_watts,
};
use hopline_radio::phy::sensitivity::Sensitivity;
use hopline_radio::phy::{self, reception::ReceptionModel};
use hopline_radio::rate::Rate;
use hopline_sim::spec::{AddressResolution, Attachment, LossSpec, NodeSpec, PowerDraw, QueueSpec, RadioSpec};

/// Settings of the preset of `[radio]`, for everything that it covers.
struct Preset {
    phy: phy::Config,
    /// Its ranges, where they are circles.
    disk: RangeDisk,
    mac: mac::Config,
    queue: QueueSpec,
    link_layer_delay: Duration,
    arp_jitter: Duration,
}

impl Preset {
    fn of(name: RadioPreset) -> Self {
        let standard = |mac| Self {
            phy: phy::Config::wavelan(),
            disk: RangeDisk::default(),
            mac,
            queue: queue::PLAIN,
            link_layer_delay: Duration::ZERO,
            // The default of ns-3; RFC 826 has no jitter.
            arp_jitter: Duration::from_millis(10),
        };
        match name {
            RadioPreset::Ns2Wavelan => Self {
                phy: phy::Config::ns2_wavelan(),
                queue: queue::NS2,
                link_layer_delay: Duration::from_micros(25),
                arp_jitter: Duration::ZERO,
                ..standard(mac::Config::ns2_wavelan())
            },
            RadioPreset::Qualnet367 => Self {
                phy: phy::Config::qualnet_367(),
                disk: RangeDisk::QUALNET_367,
                queue: queue::QUALNET,
                ..standard(mac::Config::qualnet())
            },
            RadioPreset::Ns3Wavelan => standard(mac::Config::ns3_wavelan()),
            RadioPreset::Dot11b => standard(mac::Config::dot11b()),
            RadioPreset::Dot11a => standard(mac::Config::dot11a()),
            RadioPreset::Madwifi => standard(mac::Config::madwifi()),
            RadioPreset::Dot11bRanges => {
                Self { phy: phy::Config::dot11b_ranges(), ..standard(mac::Config::dot11b()) }
            }
            RadioPreset::Dot11aRanges => {
                Self { phy: phy::Config::dot11a_ranges(), ..standard(mac::Config::dot11a()) }
            }
        }
    }
}

/// Returns the radio of all wireless nodes; `None` without `[radio]`.
pub(super) fn resolve(
    scenario: ScenarioWithMachines<'_>,
    nodes: &[NodeSpec],
    names: &Names,
) -> Result<Option<RadioSpec>, Problem> {
    let section = scenario.section("radio");
    if !section.is_given() {
        if let Some(obstacle) = scenario.sections("obstacle").first() {
            return Err(Problem::new("[[obstacle]] without [radio]: there is nothing that it could weaken")
                .at(obstacle.origin)
                .help("add [radio], or remove it"));
        }
        let lone = ["mac", "queue"].into_iter().find(|name| scenario.has(name));
        return match lone {
            None => Ok(None),
            Some(name) => {
                Err(Problem::new(format!("[{name}] without [radio]: the network has no wireless nodes"))
                    .at(scenario.origin_of(name))
                    .help("add [radio], or remove it; a wired link has its own queue"))
            }
        };
    }
    let mut preset = preset(*scenario)?;
    preset.phy = preset.phy.at_data_rate(preset.mac.data_rate);
    apply_phy(&mut preset.phy, preset.disk, section)?;
    let delay = section.number("link_layer_delay_us").map(|us| Duration::from_secs_f64(us * 1e-6));
    let address_resolution = address_resolution(*scenario);
    let word = match address_resolution {
        AddressResolution::Known => "known",
        AddressResolution::Arp => "arp",
    };
    reject_foreign_keys(&section, "address_resolution", word, &[(&["arp"], &["arp_jitter_s"])])?;
    let arp_jitter = jitter::of(&section, "arp_jitter_s", preset.arp_jitter, Some(preset.mac.first_access));
    Ok(Some(RadioSpec {
        phy: preset.phy,
        mac: preset.mac,
        queue: queue::resolve(preset.queue, scenario.section("queue"), scenario.machines)?,
        link_layer_delay: delay.unwrap_or(preset.link_layer_delay),
        address_resolution,
        arp_jitter,
        errors: links::errors(section.section("errors"))?,
        losses: losses(section, nodes, names)?,
        obstacles: obstacles::resolve(*scenario)?,
        neighborhood: None,
        power_draw: PowerDraw {
            transmit_w: section.get(keys::radio::TRANSMIT_DRAW_W),
            receive_w: section.get(keys::radio::RECEIVE_DRAW_W),
            idle_w: section.get(keys::radio::IDLE_DRAW_W),
        },
    }))
}

/// Returns the preset of `[radio]`, and what `[mac]` puts over its MAC.
fn preset(scenario: Section<'_>) -> Result<Preset, Problem> {
    let mut preset = Preset::of(scenario.section("radio").get(keys::radio::PRESET));
    apply_mac(&mut preset.mac, scenario.section("mac"))?;
    Ok(preset)
}

/// Returns the rate of data frames; `None` without `[radio]`.
pub(super) fn data_rate(scenario: Section<'_>) -> Result<Option<Rate>, Problem> {
    match scenario.section("radio").is_given() {
        true => preset(scenario).map(|preset| Some(preset.mac.data_rate)),
        false => Ok(None),
    }
}

/// Returns known addresses by default, unless DSR is to be ns-2's: its replies and salvaged packets get lost
/// while addresses are resolved.
fn address_resolution(scenario: Section<'_>) -> AddressResolution {
    let routing = scenario.section("routing");
    let is_ns2s_dsr = routing.get(keys::of_routing::PROTOCOL) == Protocol::Dsr
        && keys::dsr::PRESET.word(&routing.section("dsr")) == "ns2-2.35";
    let default = if is_ns2s_dsr { AddressResolution::Arp } else { AddressResolution::Known };
    scenario.section("radio").get(keys::radio::ADDRESS_RESOLUTION).unwrap_or(default)
}

/// Returns the losses between pairs of nodes, one for each direction.
fn losses(radio: Section<'_>, nodes: &[NodeSpec], names: &Names) -> Result<Vec<LossSpec>, Problem> {
    let mut losses: Vec<LossSpec> = Vec::new();
    for section in radio.sections("loss") {
        let from = node_named(&section, keys::loss::FROM, names)?;
        let to = node_named(&section, keys::loss::TO, names)?;
        let wrong = |what: &str, help: &str| Problem::new(what).at(section.origin_of("to")).help(help);
        if from == to {
            return Err(wrong("a loss between a node and itself", "from and to are different nodes"));
        }
        if [from, to].iter().any(|node| nodes[node.index()].attachment() != Attachment::Wireless) {
            return Err(wrong(
                "a loss of frames at a node without a radio",
                "errors of a wire are link.errors",
            ));
        }
        let loss = LossSpec { from, to, errors: links::errors(section)? };
        let back = LossSpec { from: to, to: from, ..loss };
        let both = section.flag("both_ways") == Some(true);
        for loss in [loss].into_iter().chain(both.then_some(back)) {
            if losses.iter().any(|other| (other.from, other.to) == (loss.from, loss.to)) {
                return Err(wrong(
                    "a second loss of one pair and direction",
                    "one [[radio.loss]] says all of it",
                ));
            }
            losses.push(loss);
        }
    }
    Ok(losses)
}

/// The keys of each propagation model.
const PROPAGATION_KEYS: [OwnedKeys; 4] = [
    (&["log-distance", "shadowing"], &["path_loss_exponent", "reference_distance_m"]),
    (&["shadowing"], &["shadowing_deviation_db", "shadowing_draw"]),
    (&["range-disk"], &["interference_range_m"]),
    (&["two-ray"], &["antenna_height_m"]),
];

fn apply_phy(config: &mut phy::Config, disk: RangeDisk, section: Section<'_>) -> Result<(), Problem> {
    match section.word("reception") {
        Some("lock-on-sensed") => config.reception = ReceptionModel::LockOnSensed,
        Some("lock-on-decodable") => config.reception = ReceptionModel::LockOnDecodable,
        Some(_cumulative_sinr) => config.reception = ReceptionModel::CumulativeSinr,
        None => {}
    }
    let radio = &mut config.radio;
    let set = |field: &mut f64, key: &str, convert: &dyn Fn(f64) -> f64| {
        if let Some(value) = section.number(key) {
            *field = convert(value);
        }
    };
    set(&mut radio.capture_threshold_db, "capture_db", &|db| db);
    set(&mut radio.tx_power_w, "tx_power_dbm", &dbm_to_watts);
    set(&mut radio.frequency_hz, "frequency_mhz", &|mhz| mhz * 1e6);
    set(&mut radio.noise_figure_db, "noise_figure_db", &|db| db);
    set(&mut radio.bandwidth_hz, "noise_bandwidth_mhz", &|mhz| mhz * 1e6);
    set(&mut radio.antenna_height_m, "antenna_height_m", &|m| m);
    reject_foreign_keys(
        &section,
        "propagation",
        section.word("propagation").unwrap_or("two-ray"),
        &PROPAGATION_KEYS,
    )?;
    if let Some(propagation) = propagation(section, disk) {
        config.propagation = propagation;
    }
    if matches!(config.propagation, Propagation::RangeDisk(_)) {
        // Circles are those of every rate.
        config.sensitivity = Sensitivity::Alike;
    }
    apply_ranges(config, section)
}

fn propagation(section: Section<'_>, disk: RangeDisk) -> Option<Propagation> {
    let default = LogDistance::default();
    let median = LogDistance {
        exponent: section.number("path_loss_exponent").unwrap_or(default.exponent),
        reference_m: section.number("reference_distance_m").unwrap_or(default.reference_m),
    };
    Some(match section.word("propagation")? {
        "free-space" => Propagation::FreeSpace,
        "two-ray" => Propagation::TwoRayGround,
        "log-distance" => Propagation::LogDistance(median),
        "range-disk" => Propagation::RangeDisk(disk),
        _shadowing => Propagation::Shadowing(Shadowing {
            median,
            deviation_db: section
                .number("shadowing_deviation_db")
                .unwrap_or(Shadowing::default().deviation_db),
            draw: section.get(keys::radio::SHADOWING_DRAW).unwrap_or(ShadowingDraw::PerFrame),
        }),
    })
}

/// Ranges move the thresholds to the power that arrives at that distance; circles take them as they are.
fn apply_ranges(config: &mut phy::Config, section: Section<'_>) -> Result<(), Problem> {
    let [range, sense, interference] =
        ["range_m", "carrier_sense_range_m", "interference_range_m"].map(|key| section.number(key));
    let radio = &mut config.radio;
    let (near, far) = if let Propagation::RangeDisk(disk) = &mut config.propagation {
        disk.transmission_m = range.unwrap_or(disk.transmission_m);
        disk.carrier_sense_m = sense.unwrap_or(disk.carrier_sense_m);
        let between =
            disk.interference_m.clamp(disk.transmission_m, disk.carrier_sense_m.max(disk.transmission_m));
        disk.interference_m = interference.unwrap_or(between);
        if !(disk.transmission_m..=disk.carrier_sense_m).contains(&disk.interference_m) {
            return Err(Problem::new(
                "`interference_range_m` is not between the ranges of reception and carrier sense",
            )
            .at(section.origin_of("interference_range_m"))
            .help(format!("it takes a number from {} to {}", disk.transmission_m, disk.carrier_sense_m)));
        }
        (disk.transmission_m, disk.carrier_sense_m)
    } else {
        if let Some(range) = range {
            radio.rx_threshold_w = config.propagation.received_w(radio, range);
        }
        if let Some(sense) = sense {
            radio.cs_threshold_w = config.propagation.received_w(radio, sense);
        }
        let range_for = |threshold| config.propagation.range_for(radio, threshold);
        (range_for(radio.rx_threshold_w), range_for(radio.cs_threshold_w))
    };
    if near <= far {
        return Ok(());
    }
    let key = if section.has("range_m") { "range_m" } else { "carrier_sense_range_m" };
    Err(Problem::new(format!("frames would be received up to {near:.0} m but sensed only up to {far:.0} m"))
        .at(section.origin_of(key))
        .help("carrier_sense_range_m is at least range_m"))
}

/// The keys of each acknowledgment policy. Those of no-ack and of bursts are no error with others, so that
/// all can be compared.
const ACK_POLICY_KEYS: [OwnedKeys; 1] =
    [(&["block-ack"], &["block_size", "txop_limit_us", "block_ack_timeout_ms", "block_ack_setup"])];

fn apply_mac(config: &mut mac::Config, section: Section<'_>) -> Result<(), Problem> {
    if let Some(rate) = rate(&section, "data_rate_mbps")? {
        config.data_rate = rate;
    }
    if let Some(rate) = rate(&section, "basic_rate_mbps")? {
        config.basic_rate = rate;
    }
    match (section.word("rts_threshold_bytes"), section.integer_u32("rts_threshold_bytes")) {
        (Some("always"), _) => config.rts_threshold_bytes = 0,
        (Some(_never), _) => config.rts_threshold_bytes = u32::MAX,
        (None, Some(bytes)) => config.rts_threshold_bytes = bytes,
        (None, None) => {}
    }
    let byte = |key| section.integer_as::<u8>(key);
    let window = |key| section.integer_as::<u16>(key);
    config.short_retry_limit = byte("short_retry_limit").unwrap_or(config.short_retry_limit);
    config.long_retry_limit = byte("long_retry_limit").unwrap_or(config.long_retry_limit);
    config.cw_min = window("cw_min").unwrap_or(config.cw_min);
    config.cw_max = window("cw_max").unwrap_or(config.cw_max);
    let policy = section.word("ack_policy").unwrap_or("normal");
    reject_foreign_keys(&section, "ack_policy", policy, &ACK_POLICY_KEYS)?;
    apply_rules(config, section);
    config.validate().map_err(|e| {
        Problem::new(format!("MAC parameters do not fit together: {e}")).at(first_origin(&section))
    })
}

/// Returns the first value that was given.
fn first_origin<'a>(section: &Section<'a>) -> &'a Origin {
    let given = section.keys().find(|key| section.has(key.name));
    given.map_or(section.origin, |key| section.origin_of(key.name))
}

fn apply_rules(config: &mut mac::Config, section: Section<'_>) {
    match section.word("ack_policy") {
        Some("normal") => config.ack_policy = AckPolicy::Normal,
        Some("no-ack") => config.ack_policy = AckPolicy::NoAck,
        Some(_block_ack) => config.ack_policy = block_ack(section),
        None => {}
    }
    let bytes = |key, default| section.integer_u32(key).unwrap_or(default);
    config.no_ack_bytes = bytes("no_ack_min_bytes", 0)..=bytes("no_ack_max_bytes", u32::MAX);
    config.burst_limit = section.integer("burst_limit_us").map(Duration::from_micros).or(config.burst_limit);
    let time = |key| section.number(key).map(|ms| Duration::from_secs_f64(ms * 1e-3));
    config.msdu_lifetime = time("msdu_lifetime_ms");
    config.block_ack_timeout = time("block_ack_timeout_ms");
    section.set_if_given(keys::mac::BLOCK_ACK_SETUP, &mut config.block_ack_setup);
    section.set_if_given(keys::mac::PREAMBLE, &mut config.preamble);
    section.set_if_given(keys::mac::FIRST_ACCESS, &mut config.first_access);
    section.set_if_given(keys::mac::EIFS, &mut config.eifs);
    section.set_if_given(keys::mac::RESPONSE_TIMEOUT, &mut config.response_timeout);
    section.set_if_given(keys::mac::RESERVATION, &mut config.reservation);
    section.set_if_given(keys::mac::BACKOFF_RANGE, &mut config.backoff_range);
    section.set_if_given(keys::mac::NAV_RESET, &mut config.nav_reset);
}

fn block_ack(section: Section<'_>) -> AckPolicy {
    let block_size = section.integer_u32("block_size").and_then(|n| u8::try_from(n).ok());
    AckPolicy::BlockAck {
        block_size: block_size.unwrap_or(AckPolicy::DEFAULT_BLOCK_SIZE),
        txop_limit: section.integer("txop_limit_us").map(Duration::from_micros),
    }
}

fn rate(section: &Section<'_>, key: &str) -> Result<Option<Rate>, Problem> {
    let Some(mbps) = section.number(key) else { return Ok(None) };
    let found = Rate::ALL.into_iter().find(|rate| rate.mbps() == mbps);
    found.map(Some).ok_or_else(|| {
        let known: Vec<String> = Rate::ALL.iter().map(|r| r.mbps().to_string()).collect();
        Problem::new(format!("802.11 has no rate of {mbps} Mb/s"))
            .at(section.origin_of(key))
            .help(format!("rates are {} Mb/s", known.join(", ")))
    })
}
