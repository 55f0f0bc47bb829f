//! Two TCP endpoints with real bytes and a middlebox between them: every byte arrives once and in order,
//! whatever both links do.

mod ack_pacing;
mod dproxy;
mod filters;
mod handoff;
mod nack;
mod outages;
mod pair;
mod split;
mod support;
