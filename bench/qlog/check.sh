#!/bin/sh
# Reads the logs of a lossy flow over each transport with Cloudflare's types. Needs $HOPLINE and $QLOG_SCHEMA, two programs.
set -eu
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for transport in tcp-reno tcp-newreno tcp-sack tcp-cubic tcp-bbr tcp-bbr3 tcp-door tpa tpa-wide; do
	"$HOPLINE" run "$here/lossy.toml" --set "transport=$transport" --qlog "$folder/$transport" --json > "$folder/$transport.json"
	"$QLOG_SCHEMA" "$folder/$transport.json" "$folder/$transport"
done
