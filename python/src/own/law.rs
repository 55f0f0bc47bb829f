//! Congestion control algorithms.

use super::instance::{Class, Method, attached};
use hopline_lab::user_defined::{
    CongestionSignal, CustomCcAck, CustomCcLoss, CustomCcState, CustomCcTimeout, CustomCongestionControl,
    TimeoutResultUse,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Present state of the window. All sizes in bytes, all times in seconds of virtual time.
#[pyclass(frozen, get_all, module = "hopline.own")]
#[derive(Clone, Debug)]
pub(crate) struct WindowState {
    /// Virtual time, s.
    now_s: f64,
    /// Congestion window, bytes.
    cwnd_bytes: f64,
    /// Slow start threshold, bytes; 2**30 before the first loss.
    ssthresh_bytes: u32,
    /// Data of a full segment, bytes.
    mss_bytes: u32,
    /// Largest window, bytes.
    max_cwnd_bytes: u32,
    /// Data in flight, bytes.
    flight_bytes: u64,
    /// Smoothed round-trip time, s; None before the first sample.
    srtt_s: Option<f64>,
}

/// Acknowledgment of new data.
#[pyclass(frozen, get_all, module = "hopline.own")]
#[derive(Clone, Debug)]
pub(crate) struct Ack {
    /// Virtual time, s.
    now_s: f64,
    /// Congestion window, bytes.
    cwnd_bytes: f64,
    /// Slow start threshold, bytes; 2**30 before the first loss.
    ssthresh_bytes: u32,
    /// Data of a full segment, bytes.
    mss_bytes: u32,
    /// Largest window, bytes.
    max_cwnd_bytes: u32,
    /// Data in flight after this acknowledgment, bytes.
    flight_bytes: u64,
    /// Smoothed round-trip time, s; None before the first sample.
    srtt_s: Option<f64>,
    /// Newly acknowledged data, bytes.
    acked_bytes: u64,
    /// Round-trip time sample of this acknowledgment, s, in whole milliseconds if it is from timestamps; None without a
    /// sample.
    rtt_s: Option<f64>,
    /// Window after slow start's reaction to this acknowledgment, bytes.
    slow_start_bytes: f64,
    /// True if the window limited the sender.
    window_was_full: bool,
    /// True if it reports an ECN mark: the window then does not grow, whatever the method returns.
    marked: bool,
}

/// Loss or ECN mark.
#[pyclass(frozen, get_all, module = "hopline.own")]
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    /// Virtual time, s.
    now_s: f64,
    /// Congestion window, bytes.
    cwnd_bytes: f64,
    /// Slow start threshold, bytes; 2**30 before the first loss.
    ssthresh_bytes: u32,
    /// Data of a full segment, bytes.
    mss_bytes: u32,
    /// Largest window, bytes.
    max_cwnd_bytes: u32,
    /// Data in flight, bytes.
    flight_bytes: u64,
    /// Smoothed round-trip time, s; None before the first sample.
    srtt_s: Option<f64>,
    /// Base of a reduction, bytes: data in flight, or the window with presets of ns-2.
    reduced_bytes: u32,
    /// Signal of congestion: "loss" or "mark".
    sign: &'static str,
}

/// Retransmission timeout, with the state before it.
#[pyclass(frozen, get_all, module = "hopline.own")]
#[derive(Clone, Debug)]
pub(crate) struct Timeout {
    /// Virtual time, s.
    now_s: f64,
    /// Congestion window, bytes.
    cwnd_bytes: f64,
    /// Slow start threshold, bytes; 2**30 before the first loss.
    ssthresh_bytes: u32,
    /// Data of a full segment, bytes.
    mss_bytes: u32,
    /// Largest window, bytes.
    max_cwnd_bytes: u32,
    /// Data in flight, bytes.
    flight_bytes: u64,
    /// Smoothed round-trip time, s; None before the first sample.
    srtt_s: Option<f64>,
    /// Base of a reduction, bytes: data in flight, or the window with presets of ns-2.
    reduced_bytes: u32,
    /// True if the returned value is used: not if ssthresh was reduced for this loss before.
    answer_counts: bool,
}

/// Creates an object of a class with the common fields and its own.
macro_rules! with_state {
    ($class:ident, $state:expr, { $($field:ident: $value:expr),* $(,)? }) => {{
        let CustomCcState { now, cwnd_bytes, ssthresh_bytes, mss_bytes, max_cwnd_bytes, flight_bytes, srtt, .. } = $state;
        $class {
            now_s: now.as_secs_f64(),
            cwnd_bytes,
            ssthresh_bytes,
            mss_bytes,
            max_cwnd_bytes,
            flight_bytes,
            srtt_s: srtt.map(|time| time.as_secs_f64()),
            $($field: $value,)*
        }
    }};
}

/// Implements `__repr__` of Python objects.
macro_rules! shown {
    ($($class:ident),*) => {$(
        #[pymethods]
        impl $class {
            fn __repr__(&self) -> String {
                format!("{self:?}")
            }
        }
    )*};
}

shown!(WindowState, Ack, Loss, Timeout);

/// Creates an instance of an algorithm.
pub(super) fn instance(class: &Class, seed: u64) -> Result<Box<dyn CustomCongestionControl>, String> {
    attached(|py| {
        let instance = class.make(py, seed)?;
        Ok(Box::new(Law {
            on_ack: Method::of(&instance, "on_ack")?,
            on_loss: Method::of(&instance, "on_loss")?,
            on_timeout: Method::of(&instance, "on_timeout")?,
            on_undo: Method::optional(&instance, "on_undo")?,
        }) as Box<dyn CustomCongestionControl>)
    })
}

#[derive(Debug)]
struct Law {
    on_ack: Method,
    on_loss: Method,
    on_timeout: Method,
    on_undo: Option<Method>,
}

impl CustomCongestionControl for Law {
    fn on_ack(&mut self, ack: &CustomCcAck) -> Result<f64, String> {
        let told = with_state!(Ack, ack.state, {
            acked_bytes: ack.acked_bytes,
            rtt_s: ack.rtt.map(|time| time.as_secs_f64()),
            slow_start_bytes: ack.slow_start_bytes,
            window_was_full: ack.window_was_full,
            marked: ack.marked,
        });
        attached(|py| window(&self.on_ack.bind(py).call1((Bound::new(py, told)?,))?, "on_ack"))
    }

    fn on_loss(&mut self, loss: &CustomCcLoss) -> Result<f64, String> {
        let sign = match loss.signal {
            CongestionSignal::Loss => "loss",
            CongestionSignal::EcnMark => "mark",
        };
        let told = with_state!(Loss, loss.state, { reduced_bytes: loss.reduction_base_bytes, sign: sign });
        attached(|py| window(&self.on_loss.bind(py).call1((Bound::new(py, told)?,))?, "on_loss"))
    }

    fn on_timeout(&mut self, timeout: &CustomCcTimeout) -> Result<f64, String> {
        let told = with_state!(Timeout, timeout.state, {
            reduced_bytes: timeout.reduction_base_bytes,
            answer_counts: timeout.result_use == TimeoutResultUse::BecomesSsthresh,
        });
        attached(|py| window(&self.on_timeout.bind(py).call1((Bound::new(py, told)?,))?, "on_timeout"))
    }

    fn on_undo(&mut self, state: &CustomCcState) -> Result<(), String> {
        let Some(on_undo) = &self.on_undo else { return Ok(()) };
        let told = with_state!(WindowState, *state, {});
        attached(|py| on_undo.bind(py).call1((Bound::new(py, told)?,)).map(drop))
    }
}

/// Returns the window that a method returned.
fn window(answer: &Bound<'_, PyAny>, method: &str) -> PyResult<f64> {
    answer.extract().map_err(|_| {
        let got = answer.repr().map_or_else(|_| "something else".to_owned(), |repr| repr.to_string());
        PyTypeError::new_err(format!("{method} returned {got}: it returns a window in bytes, a number"))
    })
}
