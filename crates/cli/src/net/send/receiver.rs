//! Key that the receiver must have.

use super::super::identity::{self, KnownKey, KnownPeersFile};
use super::connect::key_of;
use super::retry_reason::RetryReason;
use super::{attempt_timeout, progress_timeout, setback_text};
use crate::net::RESUMABLE_MESSAGE;
use crate::net::args::Send as Args;
use crate::net::transfer_printer::TransferPrinter;
use crate::problems::Failure;
use hopline_lab::Problem;
use hopline_secure::keys::{Name, UnusableName};
use hopline_streams::wide::PublicKey;
use hopline_tools::transfer::Error;

/// Returns the key that the receiver must have, and its place in a file. If it is not known, it is requested from the
/// receiver, and nothing is sent before its key is trusted.
pub(super) fn find(
    args: &Args,
    follow: &mut TransferPrinter,
) -> Result<(PublicKey, Option<KnownKey>), Failure> {
    let name: Name = args.peer.written.parse().map_err(|error: UnusableName| {
        Problem::new(format!("{}: this cannot be the name of a peer", args.peer)).help(error.to_string())
    })?;
    let acquaintances = KnownPeersFile::load(&args.identity)?;
    let known = acquaintances.lookup(&name);
    let key = match &known {
        Some((key, _)) => *key,
        None => query_key(args, follow)?,
    };
    let fingerprint = key.fingerprint();
    match &args.trust {
        Some(wanted) if *wanted != fingerprint => Err(identity::wrong_key_error(&name, fingerprint, *wanted)),
        Some(_) => Ok((key, None)),
        None if args.trust_on_first_use && known.is_none() => {
            acquaintances.add(&name, &key).map(|()| (key, None))
        }
        None => match known {
            Some((key, known)) => Ok((key, Some(known))),
            None => Err(acquaintances.unknown_peer_error(&name, &key)),
        },
    }
}

/// Requests the key of the receiver, with retries.
fn query_key(args: &Args, follow: &mut TransferPrinter) -> Result<PublicKey, Failure> {
    loop {
        let left = progress_timeout(args).saturating_sub(follow.progressed().elapsed());
        let setback = match key_of(&args.peer, attempt_timeout(args.silence, left)) {
            Ok(key) => return Ok(key),
            Err(RetryReason::Error(Error::Interrupted)) => {
                return Err(Failure::Interrupted(RESUMABLE_MESSAGE));
            }
            Err(setback) => setback,
        };
        let left = progress_timeout(args).saturating_sub(follow.progressed().elapsed());
        if left.is_zero() {
            let why = format!("{}: {}", args.peer, setback_text(args, &setback));
            follow.report_failure(setback.code(), &why);
            return Err(Failure::Other(why));
        }
        super::pause(args, &setback, left, follow)?;
    }
}
