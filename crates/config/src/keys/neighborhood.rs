//! Neighborhood RED: `[neighborhood_red]`.

use crate::field::Field;
use crate::schema::Default::Number;
use crate::schema::{Key, Literal};
use hopline_queue::neighborhood_red::Config;
use hopline_queue::neighborhood_red::config::Limits;

const PAPER: Config = Config::PAPER;

/// Keys of [`NEIGHBORHOOD_RED`] that always have a value.
pub mod neighborhood_red {
    use super::*;

    /// `share`.
    pub const SHARE: Field<f64> = Field::number(
        Key::number(
            "share",
            0.0,
            1.0,
            "share of the wireless nodes with Neighborhood RED, drawn for each run; 0: none",
        )
        .with_default(Number(1.0)),
    );
}

/// `[neighborhood_red]`.
pub const NEIGHBORHOOD_RED: &[Key] = &[
    neighborhood_red::SHARE.key,
    Key::texts(
        "nodes",
        "names of the wireless nodes with Neighborhood RED, in place of share; all other nodes ignore notices",
    ).derived("all"),
    Key::number(
        "sampling_s",
        0.000_1,
        1000.0,
        "Tinterval: sampling interval of radio times",
    ).default(Literal::seconds(PAPER.sampling)),
    Key::number("weight", 1e-6, 1.0, "wq: weight of the latest interval in the averages").default(Literal::Number(PAPER.weight)),
    Key::number("bandwidth_mbps", 0.001, 10_000.0, "W: rate of the channel").derived("mac.data_rate_mbps"),
    Key::integer(
        "mean_packet_bytes",
        1,
        65_535,
        "C: a mean packet, which scales the averages",
    ).default(Literal::Integer((PAPER.packet_bits / 8) as u64)),
    Key::number(
        "min_threshold_packets",
        0.0,
        1e6,
        "minth: average below which there is no congestion; below max_threshold_packets",
    ).derived("100 times bandwidth_mbps / 2"),
    Key::number(
        "max_threshold_packets",
        0.001,
        1e6,
        "maxth: average from which on neighbours drop everything",
    ).derived("240 times bandwidth_mbps / 2"),
    Key::number(
        "max_probability",
        1e-6,
        1.0,
        "maxp: share of the neighborhood's packets that is dropped as the average reaches max_threshold_packets",
    ).default(Literal::Number(PAPER.max_probability)),
    Key::number(
        "notice_interval_s",
        0.001,
        30.0,
        "TNCN: interval at which a node decides on a notice",
    ).default(Literal::seconds(PAPER.notice_interval)),
    Key::number(
        "lifetime_s",
        0.002,
        65.535,
        "lifetime of a notice, at least two notice intervals",
    ).default(Literal::seconds(PAPER.lifetime)),
    Key::word(
        "suffering",
        &["below-share", "below-fair-share"],
        "nodes that send notices: those with an average below suffering_share of the total, or below the fair share among their active neighbours and themselves",
    ).default(Literal::Word("below-share")),
    Key::number("suffering_share", 0.001, 1.0, "of below-share").default(Literal::Number(0.5)),
    Key::number(
        "flow_memory_s",
        0.001,
        1000.0,
        "time for which a node is on the path of a flow after its last packet",
    ).default(Literal::seconds(PAPER.flow_memory)),
    Key::number(
        "neighbour_memory_s",
        0.001,
        1000.0,
        "time for which a neighbour is active after its last received frame",
    ).default(Literal::seconds(PAPER.neighbour_memory)),
    Key::word(
        "delivery",
        &["unicast", "broadcast", "none"],
        "notices go to a random neighbour and are overheard, or to all; none: nodes only observe",
    ).default(Literal::Word("unicast")),
    Key::word(
        "incoming",
        &["dropped", "relayed"],
        "packets to a neighbour of the suffering node are dropped by that neighbour, or by their sender, to which the notice is relayed",
    ).default(Literal::Word("dropped")),
    Key::number(
        "relay_jitter_s",
        0.0,
        10.0,
        "of broadcast and relayed: a notice is relayed after a random delay below this, so that relays do not collide",
    ).default(Literal::seconds(PAPER.relay_jitter)),
    Key::word(
        "action",
        &["drop", "mark"],
        "action on a chosen packet; mark: ECN-capable packets are marked (TPA-wide, TCP with ECN), others dropped",
    ).default(Literal::Word("drop")),
    Key::word(
        "guard",
        &["off", "on"],
        "on: notices that forbid everything for long lose weight; off: as published",
    ).default(Literal::Word("off")),
    Key::number(
        "guard_lifetime_s",
        0.001,
        65.535,
        "of guard: longest accepted lifetime, and longest time for which worse-off neighbours keep a node quiet",
    ).default(Literal::seconds(Limits::DEFAULT.max_lifetime)),
    Key::number(
        "guard_spacing_s",
        0.0,
        1000.0,
        "of guard: least time between notices of a neighbour, and between relayed ones",
    ).default(Literal::seconds(Limits::DEFAULT.min_spacing)),
    Key::number(
        "guard_rest_s",
        0.0,
        1e6,
        "of guard: after everything was forbidden for guard_lifetime_s, the drop share is limited for this time to that just below max_threshold_packets",
    ).default(Literal::seconds(Limits::DEFAULT.recovery_time)),
    Key::texts(
        "observe",
        "names of nodes with a record of their real neighborhood queue beside the estimate, ten times a second",
    ).derived("none"),
    Key::number(
        "observe_weight",
        1e-6,
        1.0,
        "weight of the latest sample in the average of the observed real queue",
    ).derived("weight"),
];
