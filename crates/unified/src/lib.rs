//! Features that several programs need of common libraries. `Cargo.toml` lists them; there is no code.
