//! The lab from outside: one program, as linking one for each file takes longer than most tests.

mod json_schema;
mod metrics;
mod papers;
mod scenarios;
mod user_defined;
