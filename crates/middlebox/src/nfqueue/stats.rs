//! Kernel statistics of queues.

use std::fs;

/// Kernel statistics of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStats {
    /// Packets that wait for a verdict.
    pub waiting: u32,
    /// Packets that were dropped or passed because the queue was full.
    pub queue_dropped: u32,
    /// Packets that were dropped or passed because the socket's receive buffer was full.
    pub user_dropped: u32,
}

/// Returns the statistics of the queue `number` of the calling thread's namespace; `None` if no process has bound it, or
/// the kernel does not report it.
#[must_use]
pub fn queue_stats(number: u16) -> Option<QueueStats> {
    let text = fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue").ok()?;
    find(&text, number)
}

/// Finds the line of a queue: number, owner, waiting, copy mode, copy range, full, no room, last packet, 1.
fn find(text: &str, number: u16) -> Option<QueueStats> {
    text.lines().find_map(|line| {
        let fields: Vec<u32> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        let &[queue, _, waiting, _, _, found_full, found_no_room, ..] = &fields[..] else { return None };
        (queue == u32::from(number)).then_some(QueueStats {
            waiting,
            queue_dropped: found_full,
            user_dropped: found_no_room,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_found_by_its_number() {
        let text = "    6  -7402     0 2 65531     0     0        0  1\n    7   7401     3 2 65531     4     5      312  1\n";
        assert_eq!(find(text, 7), Some(QueueStats { waiting: 3, queue_dropped: 4, user_dropped: 5 }));
        for number in [8, 3] {
            assert_eq!(find(text, number), None);
        }
        assert_eq!(find("nonsense\n7 1\n", 7), None);
    }
}
