#!/bin/sh
# Builds PEPsal (GPL; a peer to be measured against, no part of this project) in a folder of your choice:
#
#   bench/pepsal/build.sh [FOLDER]        default: a new folder in the system's place for temporary files
#
# PEPSAL_SOURCE names a copy of its repository, bare or not, where GitHub cannot be reached. The last line printed is the program.
set -eu

# Git sets variables such as GIT_DIR for its hooks. With them, the checkout below would change that repository.
# shellcheck disable=SC2046
unset $(git rev-parse --local-env-vars)
source=${PEPSAL_SOURCE:-https://github.com/danielinux/pepsal}
commit=7c7caef # of 2018, the last one
folder=${1:-$(mktemp -d)}

if ! git clone --quiet "$source" "$folder/pepsal"; then
    echo "PEPsal's source could not be fetched from $source: name a copy of its repository in PEPSAL_SOURCE" >&2
    exit 1
fi
cd "$folder/pepsal"
git checkout --quiet "$commit"
echo '#define VERSION "2.0.0"' > include/config.h
gcc -O2 -w -D_GNU_SOURCE -DNDEBUG -Iinclude src/*.c -lpthread -o pepsal
echo "$PWD/pepsal"
