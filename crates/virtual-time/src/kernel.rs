//! The kernel that runs at each node: user-mode Linux, built by `make uml`.

use crate::error::Error;
use hopline_core::Duration;
use hopline_linux::sys;
use std::env;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{self, Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::{thread, time};

/// End of the version of a kernel that this crate can run: `edition` of tools/uml/build.
pub const EDITION: &str = "-hopline.3";
/// Time for a kernel to print its version.
const VERSION_LIMIT: time::Duration = time::Duration::from_secs(10);
/// File name of the kernel.
const KERNEL: &str = "linux";
/// File name of the library that is loaded before it, beside it: tools/uml/entropy.c.
const ENTROPY: &str = "entropy.so";

/// Beginning of the message of the first process that it could not prepare the host.
pub const PREPARING: &str = "preparing the host";
/// Beginning of its message that the end of a program could not be noted.
pub(crate) const WRITING_END: &str = "noting the end of program";
/// Parts of lines with the reason for the end of a kernel, the best one first.
const REASONS: [&str; 4] = [PREPARING, WRITING_END, "Out of memory", "Kernel panic"];
/// End of the last line of a kernel that gets SIGBUS: its memory, a file, does not fit on the disk.
const NO_MEMORY: &str = "Kernel mode signal 7";
const NO_MEMORY_HELP: &str =
    " (no space for its memory, up to 64 MiB, in /dev/shm or the folder for temporary files)";

/// Command line of all kernels, before the devices of further interfaces. Everything in it enters their random numbers: it is
/// the same for each folder, and for all nodes with equally many interfaces.
///
/// The console reads nothing and is written to a file. The root is that of this machine, read only. Paths begin at the
/// folder of the host, which is the working directory of the kernel's process.
const ARGUMENTS: [&str; 12] = [
    "root=/dev/root",
    "rootfstype=hostfs",
    "ro",
    "init=/proc/self/cwd/init",
    "time-travel=ext:time",
    "virtio_uml.device=net:1",
    // As a TAP does: a frame that was handed over no longer counts for its socket.
    "virtio_net.napi_tx=0",
    "umid=host",
    "uml_dir=.",
    "con=null",
    "con0=null,fd:1",
    "quiet",
];

/// A kernel image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelImage {
    kernel: PathBuf,
    entropy: PathBuf,
    version: String,
}

/// The machine that a kernel seems to run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Memory in MiB.
    pub memory_mb: u32,
    /// Virtual time that each system call takes, at most 4 s. All other processing takes none, but for 256 ns for reading
    /// the clock. With zero, a program that polls in a loop may keep virtual time from advancing.
    pub syscall_cost: Duration,
}

impl Default for Machine {
    /// 64 MiB, of which boot takes 20, and 5 µs.
    fn default() -> Self {
        Self { memory_mb: 64, syscall_cost: Duration::from_micros(5) }
    }
}

/// A kernel that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// There is none.
    #[error(
        "there is no user-mode Linux kernel at {}: `make uml` in hopline's source folder builds it once",
        .0.display()
    )]
    Missing(PathBuf),
    /// It does not run.
    #[error(
        "{} is no kernel that runs here: {error}; run `make uml` in hopline's source folder",
        path.display()
    )]
    NotExecutable {
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// It is another one, or something else.
    #[error(
        "{} is a kernel of version `{version}`, and hopline needs one that ends in `{EDITION}`: run `make uml` in hopline's source folder",
        path.display()
    )]
    Version {
        /// Path of the file.
        path: PathBuf,
        /// Its version, as it prints it.
        version: String,
    },
}

impl KernelImage {
    /// Returns the folder in which `make uml` puts the kernel: `hopline/uml` of the user's cache.
    #[must_use]
    pub fn default_folder() -> PathBuf {
        let home = || env::home_dir().unwrap_or_default().join(".cache");
        let cache = env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty());
        cache.map_or_else(home, PathBuf::from).join("hopline/uml")
    }

    /// Returns its version, such as `6.12.117-hopline.3`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Finds the kernel in a folder, and checks its version.
    ///
    /// # Errors
    /// If it is missing, or of another version.
    pub fn find(folder: &Path) -> Result<Self, ImageError> {
        // The process of a kernel starts in another folder.
        let folder = path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let (kernel, entropy) = (folder.join(KERNEL), folder.join(ENTROPY));
        for path in [&kernel, &entropy] {
            if !path.is_file() {
                return Err(ImageError::Missing(path.clone()));
            }
        }
        let output = match output_within(Command::new(&kernel).arg("--version"), VERSION_LIMIT) {
            Ok(output) => output,
            Err(error) => return Err(ImageError::NotExecutable { path: kernel, error }),
        };
        match String::from_utf8_lossy(&output.stdout).trim() {
            version if version.ends_with(EDITION) => {
                Ok(Self { kernel, entropy, version: version.to_owned() })
            }
            "" => {
                let error =
                    io::Error::other(format!("it printed no version, and ended with {}", output.status));
                Err(ImageError::NotExecutable { path: kernel, error })
            }
            version => Err(ImageError::Version { path: kernel, version: version.to_owned() }),
        }
    }

    /// Starts the kernel in the folder of a host. It ends with the calling thread.
    ///
    /// `seed`: of its random numbers. `interfaces`: their number. `arguments`: of its first process.
    pub(crate) fn start(
        &self,
        folder: &Path,
        seed: u64,
        machine: Machine,
        interfaces: usize,
        arguments: &[String],
    ) -> Result<Child, Error> {
        let console = File::create(folder.join("console")).map_err(Error::system("creating a console"))?;
        let errors = console.try_clone().map_err(Error::system("creating a console"))?;
        let mut command = Command::new(&self.kernel);
        command
            .args(ARGUMENTS)
            .args((1..interfaces).map(|number| format!("virtio_uml.device={}:1", socket(number))))
            .arg(format!("mem={}M", machine.memory_mb))
            .arg(format!("syscall_ns={}", machine.syscall_cost.as_nanos()))
            .arg("--")
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("LD_PRELOAD", &self.entropy)
            .env("HOPLINE_ENTROPY", format!("{seed:016x}"))
            .stdin(Stdio::null())
            .stdout(console)
            .stderr(errors)
            // Ctrl-C at a terminal ends the emulation, and not a kernel.
            .process_group(0);
        sys::make_repeatable(&mut command);
        command.spawn().map_err(Error::system(format!("starting {}", self.kernel.display())))
    }
}

/// Returns the output of a command, which is little.
fn output_within(command: &mut Command, limit: time::Duration) -> io::Result<Output> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    for _ in 0..limit.as_millis() {
        if child.try_wait()?.is_some() {
            return child.wait_with_output();
        }
        thread::sleep(time::Duration::from_millis(1));
    }
    child.kill()?;
    child.wait()?;
    Err(io::Error::other(format!("it printed no version within {limit:?}")))
}

/// Returns the file name of the socket to which a kernel connects the interface of this number.
pub(crate) fn socket(interface: usize) -> String {
    match interface {
        0 => "net".into(),
        number => format!("net{number}"),
    }
}

/// Returns the last line of a console that is not empty.
pub(crate) fn last_line(console: &Path) -> io::Result<String> {
    let text = std::fs::read(console)?;
    let text = String::from_utf8_lossy(&text);
    let lines = || text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    // After the reason, a kernel prints where it was, and that it switches itself off.
    let reason = REASONS.iter().find_map(|reason| lines().find(|line| line.contains(reason)));
    let last = reason.or_else(|| lines().find(|line| !line.starts_with("reboot:"))).unwrap_or("nothing");
    Ok(format!("{last}{}", if last.ends_with(NO_MEMORY) { NO_MEMORY_HELP } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder(name: &str, script: Option<&str>) -> PathBuf {
        let folder = env::temp_dir().join(format!("hopline-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        if let Some(script) = script {
            let kernel = folder.join(KERNEL);
            std::fs::write(&kernel, script).expect("written");
            std::fs::set_permissions(&kernel, PermissionsExt::from_mode(0o755)).expect("executable");
            std::fs::write(folder.join(ENTROPY), "").expect("written");
        }
        folder
    }

    #[test]
    fn the_reason_for_the_end_is_found_before_what_follows_it() {
        let folder = folder("console", None);
        let last = |text: &str| {
            std::fs::write(folder.join("console"), text).expect("written");
            last_line(&folder.join("console")).expect("a file")
        };
        assert_eq!(last(""), "nothing");
        assert_eq!(
            last("preparing the host: full\nKernel panic - x\n [<60>] trace\n"),
            "preparing the host: full"
        );
        assert_eq!(
            last("noting the end of program a: full\nreboot: Power down\n"),
            "noting the end of program a: full"
        );
        assert_eq!(last("Checking\nNo space left\nreboot: Power down\n"), "No space left");
        assert!(last("Kernel panic - not syncing: Kernel mode signal 7\n").contains("in /dev/shm"));
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_missing_kernel_is_named() {
        let folder = folder("no-kernel", None);
        let error = KernelImage::find(&folder).expect_err("no file").to_string();
        assert!(
            error.contains("linux: `make uml` in") && error.starts_with("there is no user-mode Linux kernel"),
            "{error}"
        );
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_kernel_that_prints_nothing_is_not_waited_for() {
        let mut sleeping = Command::new("sleep");
        let error =
            output_within(sleeping.arg("75012"), time::Duration::from_millis(20)).expect_err("nothing");
        assert_eq!(error.to_string(), "it printed no version within 20ms");
    }

    #[test]
    fn a_kernel_of_another_version_is_refused() {
        let of = |version: &str| {
            let folder = folder("kernel", Some(&format!("#!/bin/sh\necho {version}\n")));
            let found = KernelImage::find(&folder);
            std::fs::remove_dir_all(folder).expect("removed");
            found.map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(of(&format!("6.12.117{EDITION}")), Ok(()));
        let error = of("6.12.117-hopline.2").expect_err("another version");
        assert!(error.contains("of version `6.12.117-hopline.2`, and"), "{error}");
        assert!(error.contains("one that ends in `-hopline.3`: run `make uml`"), "{error}");
    }
}
