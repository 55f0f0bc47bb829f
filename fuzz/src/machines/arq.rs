//! Links with retransmission (ARQ).

use super::Choices;
use hopline_core::{Duration, Instant, Seq16};
use hopline_proxy::arq::{Arq, ArqAction, Config, DeliveryMode, Frame, WINDOW_FRAMES};
use std::collections::BTreeMap;
use std::num::NonZeroU8;

/// Drives an end of a link with packets, its own frames, and any other frames. Checks that it never panics, releases each
/// packet that it holds exactly once, sends only packets that it holds, and comes to rest.
pub fn arq(data: &[u8]) {
    let mut choices = Choices(data);
    let which = choices.byte();
    let config = Config {
        max_transmissions: NonZeroU8::new(1 + which % 4).expect("at least 1"),
        order: if which & 64 == 0 { DeliveryMode::InOrder } else { DeliveryMode::Any },
        parity_interval: NonZeroU8::new(choices.byte() % 5),
        ..Config::default()
    };
    let mut end = Arq::new(config, 1);
    let (mut now, mut held, mut next) = (Instant::ZERO, BTreeMap::new(), 0u32);
    let mut sent: Vec<Frame<u32>> = Vec::new();
    while !choices.is_over() {
        match choices.byte() {
            0..40 => {
                now += Duration::from_millis(u64::from(choices.byte()));
                end.handle_timeout(now);
            }
            40..130 => {
                next += 1;
                *held.entry(next).or_insert(0) += 1;
                end.send(now, next);
            }
            130..170 => {
                let back = usize::from(choices.byte()) + 1;
                if let Some(frame) = sent.len().checked_sub(back).map(|at| sent[at].clone()) {
                    take(&mut end, now, frame, &mut held);
                }
            }
            170..180 => end.on_queue_drop(Seq16(choices.u16() % 512)),
            _ => {
                let frame = any_frame(&mut choices, &mut next);
                take(&mut end, now, frame, &mut held);
            }
        }
        drain(&mut end, &mut held, &mut sent);
        assert!(held.len() <= 2 * WINDOW_FRAMES, "it keeps {} packets", held.len());
    }
}

/// Passes a frame, and with it one reference to each packet in it.
fn take(end: &mut Arq<u32>, now: Instant, frame: Frame<u32>, held: &mut BTreeMap<u32, u32>) {
    frame.packets().for_each(|packet| *held.entry(*packet).or_insert(0) += 1);
    end.handle_frame(now, frame);
}

fn drain(end: &mut Arq<u32>, held: &mut BTreeMap<u32, u32>, sent: &mut Vec<Frame<u32>>) {
    let mut steps = 0;
    while let Some(does) = end.poll_action() {
        steps += 1;
        assert!(steps < 10_000, "it does not stop");
        match does {
            ArqAction::Send(_, frame) => {
                assert!(frame.packets().all(|packet| held.contains_key(packet)), "{frame:?} is gone");
                sent.push(frame);
            }
            ArqAction::Deliver(packet)
            | ArqAction::Refuse(packet)
            | ArqAction::ReportDrop(packet)
            | ArqAction::Release(packet) => {
                let times = held.get_mut(&packet).expect("it is held");
                *times -= 1;
                if *times == 0 {
                    held.remove(&packet);
                }
            }
        }
    }
}

/// Returns a frame with new packets, mostly near the beginning of its numbers.
fn any_frame(choices: &mut Choices<'_>, next: &mut u32) -> Frame<u32> {
    let epoch = u16::from(choices.byte() % 3);
    let number = |choices: &mut Choices<'_>| {
        Seq16(match choices.byte() {
            255 => choices.u16(),
            near => u16::from(near),
        })
    };
    let mut packet = || {
        *next += 1;
        *next
    };
    match choices.byte() % 3 {
        0 => {
            let content = (choices.byte() > 20).then(&mut packet);
            Frame::Data { epoch, first: number(choices), number: number(choices), content }
        }
        1 => {
            let count = choices.byte() % 6;
            Frame::Parity { epoch, of: (0..count).map(|_| (number(choices), packet())).collect() }
        }
        _ => {
            let mut beyond = [0; WINDOW_FRAMES / 64];
            beyond[0] = u64::from(choices.u32());
            Frame::Ack { epoch, next: number(choices), beyond }
        }
    }
}
