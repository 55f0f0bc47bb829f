//! Parsers of control messages without a connection, for fuzz targets.

use super::parameters::{Parameters, Speaks};
use super::protocol::{Extra, MAX_FROM_CLIENT, State};
use super::report::Role;
use super::results::{Here, Results};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Parses the parameters of a client, as a server does.
///
/// # Panics
/// If the result cannot be encoded, or differs after decoding it again.
pub fn parameters(text: &[u8]) {
    let Some(parameters) = received::<Parameters>(text) else { return };
    let Ok(agreed) = parameters.understood() else { return };
    agreed.plan.validate().expect("what is understood is valid");
    let told = Parameters::of(&agreed.plan, agreed.length);
    let again = sent(&told).understood().expect("what is told is understood");
    assert_eq!(Parameters::of(&again.plan, again.length), told);
}

/// Parses the results of the peer for a test with these parameters, as both sides do.
///
/// # Panics
/// If the result cannot be encoded, or differs after decoding it again.
pub fn results(parameters: &[u8], text: &[u8]) {
    let Some(Ok(agreed)) = received::<Parameters>(parameters).map(Parameters::understood) else { return };
    let Some(results) = received::<Results>(text) else { return };
    let roles = [Role::Sends, Role::Receives, Role::Sends];
    for roles in [&roles[..1], &roles[1..2], &roles] {
        let here = Here { roles, plan: &agreed.plan, length: agreed.length, omitted: &[] };
        let Ok(report) = results.clone().understood(&here) else { continue };
        assert_eq!(report.streams.len(), roles.len());
        assert!(report.cpu.user.is_finite() && report.cpu.user >= 0.0);
        assert!(report.cpu.system.is_finite() && report.cpu.system >= 0.0);
        let told = sent(&Results::of(&report, &[], Speaks::Hopline));
        told.understood(&here).expect("what is told is understood");
    }
}

/// Parses a state, and the additional message of a hopline server.
///
/// # Panics
/// If the result cannot be encoded, or differs after decoding it again.
pub fn states(data: &[u8]) {
    let Some((&first, text)) = data.split_first() else { return };
    match State::of(first) {
        Some(State::Hopline) => {
            if let Some(extra) = received::<Extra>(text) {
                assert_eq!(sent(&extra), extra);
            }
        }
        Some(state) => assert_eq!(state as i8 as u8, first),
        None => {}
    }
}

fn received<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    if text.len() > MAX_FROM_CLIENT { None } else { serde_json::from_slice(text).ok() }
}

/// Returns a message after encoding and decoding it.
fn sent<T: Serialize + DeserializeOwned>(message: &T) -> T {
    let text = serde_json::to_vec(message).expect("numbers and words");
    serde_json::from_slice(&text).expect("what is written can be read")
}
