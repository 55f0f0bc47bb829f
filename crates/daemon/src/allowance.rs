//! Rate limit of status answers for each user of this machine, so that queries in a loop take a negligible share of the
//! daemon's time.

use std::collections::BTreeMap;
use std::time::Instant;

/// Answers per second for a user, and burst after a silence. `top` and `--follow` query once a second.
const RATE: f64 = 50.0;
const BURST: f64 = 64.0;
/// Most users in the table. Beyond, users with a full burst are forgotten.
const MAX_USERS: usize = 1024;

/// Remaining answers by user.
#[derive(Debug, Default)]
pub(crate) struct Allowance(BTreeMap<u32, Bucket>);

#[derive(Debug)]
struct Bucket {
    answers: f64,
    at: Instant,
}

impl Bucket {
    fn at(&self, now: Instant) -> f64 {
        (self.answers + RATE * now.saturating_duration_since(self.at).as_secs_f64()).min(BURST)
    }
}

impl Allowance {
    /// Takes one answer for a user. Returns whether there was one.
    pub(crate) fn take(&mut self, user: u32, now: Instant) -> bool {
        if self.0.len() >= MAX_USERS {
            self.0.retain(|_, left| left.at(now) < BURST);
        }
        let left = self.0.entry(user).or_insert(Bucket { answers: BURST, at: now });
        let answers = left.at(now);
        let is_allowed = answers >= 1.0;
        *left = Bucket { answers: if is_allowed { answers - 1.0 } else { answers }, at: now };
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a beginning, from which all times are counted")]
    fn a_user_gets_fifty_answers_a_second_and_others_are_unaffected() {
        let (mut allowance, begin) = (Allowance::default(), Instant::now());
        let asked = |allowance: &mut Allowance, from_s: u64| {
            let times = (0..70_000)
                .map(|tenth| begin + Duration::from_secs(from_s) + Duration::from_micros(tenth * 100));
            times.filter(|now| allowance.take(65_534, *now)).count()
        };
        let first = asked(&mut allowance, 0);
        assert!((412..=415).contains(&first), "64 at once, 350 in 7 s: {first}");
        assert!(allowance.take(0, begin + Duration::from_secs(7)));
        assert!((412..=415).contains(&asked(&mut allowance, 60)), "silence restores the burst");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a beginning, from which all times are counted")]
    fn idle_users_are_forgotten() {
        let (mut allowance, begin) = (Allowance::default(), Instant::now());
        (0..MAX_USERS as u32).for_each(|user| assert!(allowance.take(user, begin)));
        assert!(allowance.take(5_000, begin + Duration::from_secs(1)));
        assert_eq!(allowance.0.len(), 1);
    }
}
