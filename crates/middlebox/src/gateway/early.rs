//! First data of a client, before the outcome of its connection is known.

use super::leg::{Leg, TcpLeg};
use std::task::{Context, Poll};

/// Data of the client. They are kept, in case they have to be sent by another route.
#[derive(Debug)]
pub(super) struct Early {
    kept: Vec<u8>,
    /// Bytes passed to the trunk.
    sent: usize,
    most: usize,
    reading: Reading,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Goes,
    /// The client has closed or broken the connection; the next read reports it again.
    Over,
}

impl Early {
    /// Creates a buffer for at most `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { kept: Vec::new(), sent: 0, most, reading: Reading::Goes }
    }

    /// Returns whether no byte has been sent, so that another route is possible.
    pub(super) fn is_unsent(&self) -> bool {
        self.sent == 0
    }

    /// Passes the data of `client` on to `far`.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, client: &mut TcpLeg, far: &mut impl Leg) {
        let mut buffer = [0; 4096];
        while self.reading == Reading::Goes && self.kept.len() < self.most {
            let room = (self.most - self.kept.len()).min(buffer.len());
            match client.poll_read(context, &mut buffer[..room]) {
                Poll::Ready(Ok(read @ 1..)) => self.kept.extend_from_slice(&buffer[..read]),
                Poll::Ready(_) => self.reading = Reading::Over,
                Poll::Pending => break,
            }
        }
        let before = self.sent;
        while self.sent < self.kept.len() {
            // The error of a broken stream is reported by the read of its answer.
            let Poll::Ready(Ok(written @ 1..)) = far.poll_write(context, &self.kept[self.sent..]) else {
                break;
            };
            self.sent += written;
        }
        if self.sent > before {
            far.push();
        }
    }

    /// Returns the bytes that have not been sent on the stream yet.
    pub(super) fn rest(mut self) -> Vec<u8> {
        self.kept.split_off(self.sent)
    }

    /// Returns all bytes, for another route.
    pub(super) fn all(self) -> Vec<u8> {
        self.kept
    }
}
