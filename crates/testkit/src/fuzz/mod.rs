//! Bodies of fuzz targets. Each takes any bytes and must return.

mod tcp;
mod tpa;
mod tpa_listener;

pub use tcp::tcp_endpoint;
pub use tpa::tpa_endpoint;
pub use tpa_listener::tpa_listener;

/// Bytes as a sequence of choices; endless zeros once they are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    fn word(&mut self) -> u32 {
        u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    fn is_done(&self) -> bool {
        self.0.is_empty()
    }
}
