//! Test that the header agrees with the Rust functions.

use std::path::Path;

/// `UPDATE_REFERENCE=1 cargo test -p hopline-capi --test header` updates it.
#[test]
fn the_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let sources = ["src/abi.rs", "src/ffi/mod.rs"];
    let builder = cbindgen::Builder::new().with_config(config);
    let builder = sources.into_iter().fold(builder, |builder, source| builder.with_src(root.join(source)));
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = root.join("include/hopline.h");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == made,
        "{} is not what src/abi.rs and src/ffi/mod.rs say; UPDATE_REFERENCE=1 writes it",
        path.display()
    );
}
