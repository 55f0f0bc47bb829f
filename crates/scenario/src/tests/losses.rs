//! `[[radio.loss]]`, and noise.

use super::errors::first_problem;
use super::*;
use hopline_radio::phy::errors::Probability;
use hopline_sim::spec::LossSpec;

const LOSS: &str = "[[radio.loss]]\nfrom = \"n1\"\nto = \"n0\"\n";

/// `CHAIN` with a loss from n1 to n0 that also says `more`.
fn with(more: &str) -> String {
    format!("{CHAIN}{LOSS}{more}")
}

fn losses(text: &str, settings: &[&str]) -> Vec<LossSpec> {
    spec(text, settings).radio.expect("a wireless network").losses
}

fn packets(p: f64) -> ErrorModel {
    ErrorModel::PacketLoss(Probability::new(p).expect("a probability"))
}

#[test]
fn a_loss_applies_to_one_direction_by_default() {
    assert_eq!(losses(CHAIN, &[]), []);
    let one = LossSpec { from: NodeId(1), to: NodeId(0), errors: packets(0.1) };
    let text = with("model = \"packet\"\npacket_loss = 0.1\n");
    assert_eq!(losses(&text, &[]), [one]);
    let both = losses(&text, &["radio.loss.0.both_ways=true"]);
    assert_eq!(both, [one, LossSpec { from: NodeId(0), to: NodeId(1), ..one }]);
    let harder = losses(&text, &["radio.loss.0.packet_loss=0.2"]);
    assert_eq!(harder, [LossSpec { errors: packets(0.2), ..one }]);
}

#[test]
fn burst_losses_have_their_usual_keys() {
    let text = with("model = \"gilbert-packet\"\ngood_to_bad = 0.01\nbad_to_good = 0.2\n");
    assert!(matches!(losses(&text, &[])[0].errors, ErrorModel::GilbertPackets(_)));
    let text =
        with("model = \"gilbert-elliott\"\nmean_good_s = 1\nmean_bad_s = 0.1\nbit_error_rate_bad = 0.01\n");
    assert!(matches!(losses(&text, &[])[0].errors, ErrorModel::GilbertElliott(_)));
}

#[test]
fn a_loss_without_a_model_has_no_effect() {
    assert_eq!(losses(&with(""), &[])[0].errors, ErrorModel::None);
}

#[test]
fn invalid_losses_are_rejected_at_their_position() {
    assert_eq!(
        first_problem(&with("").replace("to = \"n0\"", "to = \"n1\"")),
        "12:6 a loss between a node and itself | from and to are different nodes"
    );
    assert_eq!(
        first_problem(&(with("") + LOSS)),
        "15:6 a second loss of one pair and direction | one [[radio.loss]] says all of it"
    );
    let wired = "[[node]]\nname = \"n3\"\ninterface = \"wired\"\n";
    assert_eq!(
        first_problem(&(with("").replace("\"n0\"\n", "\"n3\"\n") + wired)),
        "12:6 a loss of frames at a node without a radio | errors of a wire are link.errors"
    );
    assert_eq!(
        first_problem(&with("packet_loss = 0.1\n")),
        "13:15 `packet_loss` is used with model = \"packet\", not \"none\" | set model = \"packet\", or remove it"
    );
}

#[test]
fn noise_defaults_to_that_of_802_11b() {
    let noise = |settings: &[&str]| {
        let radio = spec(CHAIN, settings).radio.expect("a wireless network").phy.radio;
        (radio.bandwidth_hz, radio.noise_figure_db)
    };
    assert_eq!(noise(&[]), (22e6, 10.0));
    assert_eq!(noise(&["radio.noise_bandwidth_mhz=20", "radio.noise_figure_db=6"]), (20e6, 6.0));
}
