# Functions that the scripts of packaging share; they source this file: . packaging/lib.sh
# It leaves the caller in the root of the repository, with these variables:
#
# version  version of the workspace, from Cargo.toml, which is where every package has it from
# epoch    time of files in packages: SOURCE_DATE_EPOCH, or else the time of the last commit
# shellcheck shell=bash disable=SC2034

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
version=$(packaging/version)
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH=$epoch

# Prints a message and ends with exit code 2: wrong usage or wrong input.
refuse() {
  echo "$(basename "$0"): $*" >&2
  exit 2
}

# Makes a folder and prints its absolute name: folder NAME
folder() {
  mkdir -p "$1"
  (cd "$1" && pwd)
}

# Packs a folder with sorted names, owner 0 and one time, so that equal content gives equal bytes: pack PARENT NAME ARCHIVE
# The compression is that of the archive's name.
pack() {
  local compress
  case $3 in
    *.tar.zst) compress='zstd -19 --no-progress --quiet --threads=1' ;;
    *.tar.gz) compress='gzip -9 --no-name' ;;
    *) compress='cat' ;;
  esac
  tar --directory "$1" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" --format=ustar \
    --mode=u+rwX,go+rX,go-w --create "$2" | $compress > "$3.part"
  mv "$3.part" "$3"
}

# Prints name and size of files in bytes, one a line.
sizes() {
  local file
  for file in "$@"; do
    printf '%-62s %12d bytes\n' "$(basename "$file")" "$(stat -c %s "$file")"
  done
}
