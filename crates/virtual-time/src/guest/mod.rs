//! First process of a kernel at a node: it prepares the host, and runs the programs.
//!
//! It is `hopline` itself, when it is started as [`init::PATH`]. The [`Plan`](plan::Plan) and the results of programs are files in the
//! folder of the host, which is outside the kernel.

pub mod init;
pub mod plan;
mod programs;
