//! The report as its readers meet it: a file, and a browser that opens it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chromium;
mod file;
mod sample;
