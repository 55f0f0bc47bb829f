# Keeps folder names of this machine out of programs; the scripts that build programs of packages source this file, in the root of
# the repository and with CARGO_TARGET_DIR set: . packaging/paths.sh
#
# rustc writes the names of source files into messages of panics. Here it writes /cargo, /hopline, /target and /rustc for the folders
# that `remapped` lists, so that two users get the same program.
# shellcheck shell=bash

# The flags below replace those of configuration files. Flags such as `target-cpu=native` of a user must not reach a package.
# Flags of the project would be lost unnoticed.
! grep -q rustflags .cargo/config.toml || {
  echo 'packaging/paths.sh: .cargo/config.toml sets rustflags, which packages would not have; add them here' >&2
  exit 2
}

# Of two prefixes that match, rustc takes the last. The last line is for machines with rustup's component rust-src.
remapped=(
  "$PWD=/hopline"
  "$CARGO_TARGET_DIR=/target"
  "${CARGO_HOME:-$HOME/.cargo}=/cargo"
  "$("${RUSTC:-rustc}" --print sysroot)/lib/rustlib/src/rust=/rustc/$("${RUSTC:-rustc}" --verbose --version | sed -n 's/^commit-hash: //p')"
)
CARGO_ENCODED_RUSTFLAGS=$(printf '\x1f--remap-path-prefix=%s' "${remapped[@]}")
export CARGO_ENCODED_RUSTFLAGS=${CARGO_ENCODED_RUSTFLAGS:1}

# Returns 1, with a message, if a file has one of the folder names in it: has_no_paths FILE
has_no_paths() {
  local pair
  for pair in "${remapped[@]}"; do
    [ "${pair%=*}" != "${pair##*=}" ] || continue
    ! grep -qF "${pair%=*}/" "$1" || {
      echo "packaging/paths.sh: $1 has names of files in ${pair%=*}" >&2
      return 1
    }
  done
}
