//! Routing: shortest paths that never change, AODV, and OLSR.

pub mod aodv;
pub mod olsr;
pub mod static_routes;

pub use static_routes::{Edge, StaticRoutes};
