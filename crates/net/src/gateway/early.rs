//! First bytes of a client, before it is known whether its connection can be made.

use super::leg::{Leg, TcpLeg};
use std::task::{Context, Poll};

/// Bytes of the client. They are kept, in case they must go another way.
#[derive(Debug)]
pub(super) struct Early {
    kept: Vec<u8>,
    /// Bytes that have been given to the trunk.
    sent: usize,
    most: usize,
    reading: Reading,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Goes,
    /// The client has ended or broken, which the next read tells again.
    Over,
}

impl Early {
    /// At most `most` bytes are read.
    pub(super) fn new(most: usize) -> Self {
        Self { kept: Vec::new(), sent: 0, most, reading: Reading::Goes }
    }

    /// Returns whether none has left, so that they may still go another way.
    pub(super) fn is_unsent(&self) -> bool {
        self.sent == 0
    }

    /// Passes on the bytes of `client` to `far`.
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
            // A stream that is broken says so where its answer is read.
            let Poll::Ready(Ok(written @ 1..)) = far.poll_write(context, &self.kept[self.sent..]) else {
                break;
            };
            self.sent += written;
        }
        if self.sent > before {
            far.push();
        }
    }

    /// The bytes that have not been sent on the stream that the others went to.
    pub(super) fn rest(mut self) -> Vec<u8> {
        self.kept.split_off(self.sent)
    }

    /// All of them, for another way.
    pub(super) fn all(self) -> Vec<u8> {
        self.kept
    }
}
