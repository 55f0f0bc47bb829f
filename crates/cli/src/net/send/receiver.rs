//! Key that the receiver must have.

use super::super::identity::{self, Acquaintances, Known};
use super::connect::key_of;
use super::setback::Setback;
use super::{call_limit, patience, told};
use crate::net::TRANSFER_KEPT;
use crate::net::args::Send as Args;
use crate::net::follow::Follow;
use crate::problems::Failure;
use hopline_lab::Problem;
use hopline_secure::keys::{Name, UnusableName};
use hopline_streams::wide::PublicKey;
use hopline_tools::transfer::Error;

/// Returns the key that the receiver must have, and its place in a file. If it is not known, it is requested from the
/// receiver, and nothing is sent before its key is trusted.
pub(super) fn find(args: &Args, follow: &mut Follow) -> Result<(PublicKey, Option<Known>), Failure> {
    let name: Name = args.peer.written.parse().map_err(|error: UnusableName| {
        Problem::new(format!("{}: this cannot be the name of a peer", args.peer)).help(error.to_string())
    })?;
    let acquaintances = Acquaintances::load(&args.identity)?;
    let known = acquaintances.known(&name);
    let key = match &known {
        Some((key, _)) => *key,
        None => ask(args, follow)?,
    };
    let fingerprint = key.fingerprint();
    match &args.trust {
        Some(wanted) if *wanted != fingerprint => Err(identity::impostor(&name, fingerprint, *wanted)),
        Some(_) => Ok((key, None)),
        None if args.trust_on_first_use && known.is_none() => {
            acquaintances.add(&name, &key).map(|()| (key, None))
        }
        None => match known {
            Some((key, known)) => Ok((key, Some(known))),
            None => Err(acquaintances.stranger(&name, &key)),
        },
    }
}

/// Requests the key of the receiver, with retries.
fn ask(args: &Args, follow: &mut Follow) -> Result<PublicKey, Failure> {
    loop {
        let left = patience(args).saturating_sub(follow.progressed().elapsed());
        let setback = match key_of(&args.peer, call_limit(args.silence, left)) {
            Ok(key) => return Ok(key),
            Err(Setback::Error(Error::Interrupted)) => return Err(Failure::Interrupted(TRANSFER_KEPT)),
            Err(setback) => setback,
        };
        let left = patience(args).saturating_sub(follow.progressed().elapsed());
        if left.is_zero() {
            let why = format!("{}: {}", args.peer, told(args, &setback));
            follow.failed(setback.code(), &why);
            return Err(Failure::Other(why));
        }
        super::pause(args, &setback, left, follow)?;
    }
}
