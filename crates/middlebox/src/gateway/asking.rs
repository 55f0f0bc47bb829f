//! A request to the exit in progress.

use super::carrier::Carrier;
use super::early::Early;
use super::greeting::{ANSWER_LEN, CHALLENGE_LEN};
use super::leg::{Leg, TcpLeg, TrunkLeg};
use std::task::{Context, Poll};

/// Side of a connection that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Client,
    Exit,
}

/// Sends a request, passes on the client's data behind it, and reads the answer.
pub(super) struct Asking<'a, P: Carrier> {
    pub(super) leg: TrunkLeg<P>,
    pub(super) early: &'a mut Early,
    client: &'a mut TcpLeg,
    request: Vec<u8>,
    /// Bytes of the request that have been sent.
    said: usize,
    /// The challenge, which an exit sends on every stream, and the answer.
    heard: [u8; CHALLENGE_LEN + ANSWER_LEN],
    len: usize,
}

impl<'a, P: Carrier> Asking<'a, P> {
    pub(super) fn new(
        leg: TrunkLeg<P>,
        request: Vec<u8>,
        client: &'a mut TcpLeg,
        early: &'a mut Early,
    ) -> Self {
        Self { leg, early, client, request, said: 0, heard: [0; CHALLENGE_LEN + ANSWER_LEN], len: 0 }
    }

    /// Becomes ready with the answer, or with the side that has ended. `passes_on`: permits sending data of the client
    /// before the answer.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        passes_on: bool,
    ) -> Poll<Result<[u8; ANSWER_LEN], Over>> {
        if self.client.poll_broken(context).is_ready() {
            return Poll::Ready(Err(Over::Client));
        }
        while self.said < self.request.len() {
            match self.leg.poll_write(context, &self.request[self.said..]) {
                Poll::Ready(Ok(written @ 1..)) => self.said += written,
                Poll::Ready(_) => return Poll::Ready(Err(Over::Exit)),
                Poll::Pending => break,
            }
            self.leg.push();
        }
        if passes_on && self.said == self.request.len() {
            self.early.poll(context, self.client, &mut self.leg);
        }
        while self.len < self.heard.len() {
            match self.leg.poll_read(context, &mut self.heard[self.len..]) {
                Poll::Ready(Ok(read @ 1..)) => self.len += read,
                Poll::Ready(_) => return Poll::Ready(Err(Over::Exit)),
                Poll::Pending => return Poll::Pending,
            }
        }
        let answer = self.heard.last_chunk().expect("an answer is a part of what is heard");
        Poll::Ready(Ok(*answer))
    }
}
