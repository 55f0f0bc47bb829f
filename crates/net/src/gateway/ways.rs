//! How connections come in, and how they are told what became of them.

use super::config::Way;
use super::destination::Destination;
use super::doors::Called;
use super::greeting::Denial;
use super::leg::{Leg, TcpLeg};
use super::socks::{Negotiation, Refusal, Step, reply};
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::time::timeout;

/// How a client hears what became of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// By the bytes that come, or a reset.
    Nothing,
    /// By a reply of SOCKS before.
    Socks,
}

impl Way {
    /// How clients hear what became of it.
    pub(crate) fn told(&self) -> Told {
        match self {
            Self::Socks { .. } => Told::Socks,
            Self::Forward { .. } | Self::Transparent { .. } => Told::Nothing,
        }
    }

    /// Where `client`, which has called `called`, wants to go, if it says so within `limit`.
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
                // Who connects to us and not through us would be led in a circle.
                Called::Us => None,
                Called::Another(server) => Destination::at(server),
            },
        }
    }
}

impl Told {
    /// Says that bytes follow.
    pub(crate) async fn connected(self, client: &mut TcpLeg) -> io::Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Socks => client.write_all(&reply(Ok(()))).await,
        }
    }

    /// Says that there is no connection.
    pub(crate) async fn refused(self, mut client: TcpLeg, denial: Denial) {
        match self {
            // A reset is what a refused connection is, once it was taken.
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
