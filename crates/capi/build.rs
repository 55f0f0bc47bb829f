//! Sets the soname of the library. Minor versions before 1.0 are incompatible, so a program does not load the library of
//! another 0.x version.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let version = |part: &str| std::env::var(format!("CARGO_PKG_VERSION_{part}")).unwrap_or_default();
    let soname = match version("MAJOR").as_str() {
        "0" => format!("libhopline.so.0.{}", version("MINOR")),
        major => format!("libhopline.so.{major}"),
    };
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{soname}");
    }
}
