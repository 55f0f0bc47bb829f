//! Routing: shortest paths that never change, and AODV.

pub mod aodv;
pub mod static_routes;

pub use static_routes::{Edge, StaticRoutes};
