//! Parsers of control messages without a connection, for fuzz targets.

use super::parameters::{Dialect, Parameters};
use super::protocol::{Extra, MAX_FROM_CLIENT, State};
use super::report::Role;
use super::results::{LocalContext, Results};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Parses the parameters of a client, as a server does.
///
/// # Panics
/// If the result cannot be encoded, or differs after decoding it again.
pub fn parameters(text: &[u8]) {
    let Some(parameters) = decode::<Parameters>(text) else { return };
    let Ok(agreed) = parameters.into_agreed() else { return };
    agreed.plan.validate().expect("what is understood is valid");
    let told = Parameters::of(&agreed.plan, agreed.length);
    let again = round_trip(&told).into_agreed().expect("what is told is understood");
    assert_eq!(Parameters::of(&again.plan, again.length), told);
}

/// Parses the results of the peer for a test with these parameters, as both sides do.
///
/// # Panics
/// If the result cannot be encoded, or differs after decoding it again.
pub fn results(parameters: &[u8], text: &[u8]) {
    let Some(Ok(agreed)) = decode::<Parameters>(parameters).map(Parameters::into_agreed) else { return };
    let Some(results) = decode::<Results>(text) else { return };
    let roles = [Role::Sends, Role::Receives, Role::Sends];
    for roles in [&roles[..1], &roles[1..2], &roles] {
        let here = LocalContext { roles, plan: &agreed.plan, length: agreed.length, omitted: &[] };
        let Ok(report) = results.clone().into_report(&here) else { continue };
        assert_eq!(report.streams.len(), roles.len());
        assert!(report.cpu.user.is_finite() && report.cpu.user >= 0.0);
        assert!(report.cpu.system.is_finite() && report.cpu.system >= 0.0);
        let told = round_trip(&Results::of(&report, &[], Dialect::Hopline));
        told.into_report(&here).expect("what is told is understood");
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
            if let Some(extra) = decode::<Extra>(text) {
                assert_eq!(round_trip(&extra), extra);
            }
        }
        Some(state) => assert_eq!(state as i8 as u8, first),
        None => {}
    }
}

fn decode<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    if text.len() > MAX_FROM_CLIENT { None } else { serde_json::from_slice(text).ok() }
}

/// Returns a message after encoding and decoding it.
fn round_trip<T: Serialize + DeserializeOwned>(message: &T) -> T {
    let text = serde_json::to_vec(message).expect("numbers and words");
    serde_json::from_slice(&text).expect("what is written can be read")
}
