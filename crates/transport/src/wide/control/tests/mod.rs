//! Tests of the rate controller as a whole.

mod driver;
mod reactions;
mod transitions;
