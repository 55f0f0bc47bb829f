//! Destinations of accepted connections, and reports of the outcome to their clients.

use super::config::Way;
use super::destination::Destination;
use super::doors::Called;
use super::greeting::Denial;
use super::leg::{Leg, TcpLeg};
use super::socks::{Negotiation, Refusal, Step, reply};
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::time::timeout;

/// Way in which a client learns the outcome of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// By the data that arrive, or a reset.
    Nothing,
    /// By a SOCKS reply before the data.
    Socks,
}

impl Way {
    /// Returns the way in which clients learn the outcome.
    pub(crate) fn told(&self) -> Told {
        match self {
            Self::Socks { .. } => Told::Socks,
            Self::Forward { .. } | Self::Transparent { .. } => Told::Nothing,
        }
    }

    /// Returns the destination of `client`, which connected to `called`. `None` if it does not name one within `limit`.
    pub(crate) async fn destination(
        &self,
        client: &mut TcpLeg,
        called: Called,
        limit: Duration,
    ) -> Option<Destination> {
        match self {
            Self::Forward { to, .. } => Some(to.clone()),
            Self::Socks { login, .. } => {
                let negotiation = Negotiation::new(login.clone());
                timeout(limit, negotiate(client, negotiation)).await.ok()?.ok()
            }
            Self::Transparent { .. } => match called {
                // A direct connection to the listener would be forwarded to itself in a loop.
                Called::Us => None,
                Called::Another(server) => Destination::at(server),
            },
        }
    }
}

impl Told {
    /// Reports success: data follow.
    pub(crate) async fn connected(self, client: &mut TcpLeg) -> io::Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Socks => client.write_all(&reply(Ok(()))).await,
        }
    }

    /// Reports failure.
    pub(crate) async fn refused(self, mut client: TcpLeg, denial: Denial) {
        match self {
            // An accepted connection that fails is reset.
            Self::Nothing => drop(client),
            Self::Socks => {
                if client.write_all(&reply(Err(denial))).await.is_ok() {
                    client.leave();
                }
            }
        }
    }
}

async fn negotiate(client: &mut TcpLeg, mut negotiation: Negotiation) -> io::Result<Destination> {
    let mut buffer = [0; 512];
    loop {
        let wants = negotiation.wants().min(buffer.len());
        let read = client.read(&mut buffer[..wants]).await?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        match negotiation.take(&buffer[..read]) {
            Ok(Step::More) => {}
            Ok(Step::Answer(answer)) => client.write_all(&answer).await?,
            Ok(Step::Connect(destination)) => return Ok(destination),
            Err(Refusal { why, answer }) => {
                client.write_all(&answer).await?;
                client.is_heard();
                return Err(io::Error::new(ErrorKind::InvalidData, why));
            }
        }
    }
}
