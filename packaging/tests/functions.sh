# Stand-in for OpenWrt's /lib/functions.sh in tests: config_load reads FILE of $UCI_EXPORT, which has the form of `uci export`.
# That form is shell: values in single quotes, within which '\'' is a quote. It calls the functions below, and these the callbacks.
# shellcheck shell=dash

config_cb() { return 0; }
option_cb() { return 0; }
list_cb() { return 0; }

package() { return 0; }
config() {
	: "${anonymous:=0}"
	[ -n "$2" ] || anonymous=$((anonymous + 1))
	config_cb "$1" "${2:-$(printf 'cfg%06x' "$anonymous")}"
}
option() { option_cb "$1" "$2"; }
list() { list_cb "$1" "$2"; }

config_load() {
	# shellcheck source=/dev/null
	. "$UCI_EXPORT"
	config_cb
}
