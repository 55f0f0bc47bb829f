//! Files that the event thread fills and another thread writes, so that a slow disk does not delay events.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

/// Bytes that are handed over at a time.
const CHUNK: usize = 64 * 1024;
/// Chunks that may wait: 16 MB.
const WAITING: usize = 256;

/// End of the event thread. Each call of `write` is a block, which is written as a whole or not at all.
#[derive(Debug)]
pub struct BlockSink {
    pending: Vec<u8>,
    blocks: u64,
    sender: SyncSender<Vec<u8>>,
    lost: Arc<AtomicU64>,
}

/// The thread that writes.
#[derive(Debug)]
pub struct BackgroundWriter {
    thread: JoinHandle<io::Result<()>>,
    lost: Arc<AtomicU64>,
}

/// Starts a thread that writes into `out`.
///
/// # Errors
/// If the system cannot start a thread.
pub fn background_writer(out: impl Write + Send + 'static) -> io::Result<(BlockSink, BackgroundWriter)> {
    let (sender, receiver) = sync_channel(WAITING);
    let lost = Arc::new(AtomicU64::new(0));
    let thread = thread::Builder::new().name("writer".into()).spawn(move || write_all(out, &receiver))?;
    let sink = BlockSink { pending: Vec::with_capacity(CHUNK), blocks: 0, sender, lost: Arc::clone(&lost) };
    Ok((sink, BackgroundWriter { thread, lost }))
}

fn write_all(mut out: impl Write, chunks: &Receiver<Vec<u8>>) -> io::Result<()> {
    for chunk in chunks {
        out.write_all(&chunk)?;
    }
    out.flush()
}

impl BlockSink {
    /// Hands over what is pending. It is lost if the other thread is too far behind, or has failed.
    fn hand_over(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let chunk = std::mem::replace(&mut self.pending, Vec::with_capacity(CHUNK));
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.sender.try_send(chunk) {
            self.lost.fetch_add(self.blocks, Ordering::Relaxed);
        }
        self.blocks = 0;
    }
}

impl Write for BlockSink {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(block);
        self.blocks += 1;
        if self.pending.len() >= CHUNK {
            self.hand_over();
        }
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hand_over();
        Ok(())
    }
}

impl Drop for BlockSink {
    fn drop(&mut self) {
        self.hand_over();
    }
}

impl BackgroundWriter {
    /// Returns whether it writes no more: the sink was dropped, or writing has failed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until everything is written, after the sink was dropped. Returns the number of blocks that were lost since
    /// the disk was too slow.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(self) -> io::Result<u64> {
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the writer has failed")))?;
        Ok(self.lost.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Condvar, Mutex};

    /// Keeps what is written, once it is opened.
    #[derive(Clone, Default)]
    struct Disk(Arc<DiskState>);

    #[derive(Default)]
    struct DiskState {
        /// `None` until it is opened.
        content: Mutex<Option<Vec<u8>>>,
        opened: Condvar,
    }

    impl Disk {
        fn open(&self) {
            *self.0.content.lock().unwrap() = Some(Vec::new());
            self.0.opened.notify_all();
        }

        fn content(&self) -> Vec<u8> {
            self.0.content.lock().unwrap().clone().unwrap()
        }
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let content = self.0.content.lock().unwrap();
            let mut content = self.0.opened.wait_while(content, |content| content.is_none()).unwrap();
            content.as_mut().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn blocks_are_written_in_order() {
        let disk = Disk::default();
        disk.open();
        let (mut sink, writer) = background_writer(disk.clone()).unwrap();
        let blocks: Vec<u8> = (0..200_000).map(|n| (n % 251) as u8).collect();
        blocks.chunks(1000).for_each(|block| sink.write_all(block).unwrap());
        drop(sink);
        assert_eq!(writer.finish().unwrap(), 0);
        assert!(disk.content() == blocks);
    }

    #[test]
    fn a_disk_that_stands_still_costs_whole_blocks_and_no_time() {
        let disk = Disk::default();
        let (mut sink, writer) = background_writer(disk.clone()).unwrap();
        let blocks = 2 * (WAITING as u64 + 10) * CHUNK as u64 / 1000;
        for _ in 0..blocks {
            sink.write_all(&[7; 1000]).unwrap();
        }
        drop(sink);
        disk.open();
        let lost = writer.finish().unwrap();
        let written = disk.content().len() as u64;
        assert!(lost > 0);
        assert_eq!(written, 1000 * (blocks - lost));
    }

    #[test]
    fn an_error_of_the_disk_is_noticed_at_once() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::other("no space left"))
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (mut sink, writer) = background_writer(Full).unwrap();
        assert!(!writer.has_ended());
        while !writer.has_ended() {
            sink.write_all(&[0; 10_000]).unwrap();
        }
        drop(sink);
        assert_eq!(writer.finish().unwrap_err().to_string(), "no space left");
    }
}
