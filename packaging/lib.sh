# Functions that the scripts of packaging share; they source this file: . packaging/lib.sh
# It leaves the caller in the root of the repository, with these variables:
#
# version  version of the workspace, from Cargo.toml, which is where every package has it from
# epoch    time of files in packages: SOURCE_DATE_EPOCH, or else the time of the last commit
# shellcheck shell=bash disable=SC2034

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
# Git sets variables such as GIT_DIR for its hooks. With them, git would read another repository than the one here.
# shellcheck disable=SC2046
unset $(git rev-parse --local-env-vars 2> /dev/null)

# Prints a message and ends with exit code 2: wrong usage or wrong input.
refuse() {
  echo "$(basename "$0"): $*" >&2
  exit 2
}

# Ends with exit code 2 unless this folder is the root of a git repository: need_repository
# A source archive has none. Inside another repository, git would read that one.
need_repository() {
  [ -e .git ] || refuse "$PWD is no git repository; this needs a clone of hopline, not its source archive"
}

# Prints a warning with the files that differ from the last commit, if there are any.
warn_of_changes() {
  local changes
  changes=$(git status --porcelain)
  [ -z "$changes" ] \
    || printf '%s: warning: these changes are in no commit; programs are built with them, the source archive is made without them:\n%s\n' \
      "$(basename "$0")" "$changes" >&2
}

version=$(packaging/version)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] \
  || refuse "Cargo.toml has version $version; packages have a version such as 1.2.3, and none of a pre-release"

# In a source archive, each file has the time of the commit.
if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
  epoch=$SOURCE_DATE_EPOCH
elif [ -e .git ]; then
  epoch=$(git log -1 --format=%ct)
else
  epoch=$(stat -c %Y CHANGELOG.md)
fi
export SOURCE_DATE_EPOCH=$epoch

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
