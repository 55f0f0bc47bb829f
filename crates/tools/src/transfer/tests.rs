//! Both machines against each other, in memory and over sockets.

mod breaks;
mod costs;
mod hostile;
mod pipeline;
mod place;
mod round_trip;
mod unresponsive;

use super::*;
use place::*;
use std::fs;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
