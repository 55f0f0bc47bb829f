# Build, test and packaging targets. Bare `make` lists them.
# Builds go to target/, or to $CARGO_TARGET_DIR.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# rustup installs cargo in ~/.cargo/bin; a shell opened earlier, or Debian's cargo, would miss it.
export PATH := $(HOME)/.cargo/bin:$(PATH)

TARGET := $(or $(CARGO_TARGET_DIR),target)
# make splits names at blanks, in targets as in recipes.
ifneq ($(words $(TARGET)),1)
$(error CARGO_TARGET_DIR has blanks: "$(TARGET)"; name a folder without them)
endif
FUZZ_SECONDS ?= 30
CARGO_FUZZ_VERSION := 0.13.2
WITH_TOOLS := PATH="$(abspath $(TARGET))/tools/bin:$$PATH"
CARGO_FUZZ := $(WITH_TOOLS) cargo fuzz
# Where `make install-c` puts the C library.
PREFIX ?= /usr/local
VERSUS := --manifest-path bench/Cargo.toml --target-dir $(TARGET)
# Property tests draw their cases from this: the same everywhere, so that a failure belongs to the change under test.
# `make explore` draws others.
export PROPTEST_RNG_SEED ?= 3561
CARGO_HACK_VERSION := 0.6.46
CARGO_SEMVER_CHECKS_VERSION := 0.51.0
# The version that `make check-semver` compares with: the last release, unless BASELINE names a commit.
BASELINE ?= $(shell git tag --list 'v[0-9]*' | sort --version-sort | tail -n 1)
# The crates that are published.
PUBLISHED := $(addprefix --package hopline-,core wire link transport secure sealed linux streams)
# Their examples that need neither arguments nor a network.
EXAMPLES := heartbeat headers stop_and_wait lossy_link own_controller
# cargo unpacks and builds a package of one version once: the next one would be built against what this one had been before.
FORGET_PACKAGES := rm -rf "$${CARGO_HOME:-$$HOME/.cargo}"/registry/src/*/hopline-* $(TARGET)/package
# A wheel of another profile, such as `release`, is linked for this machine only, and goes to wheels/PROFILE.
WHEEL_PROFILE ?= dist
WHEEL_PLATFORM = $(if $(filter dist,$(WHEEL_PROFILE)),manylinux,here)
# Packages are built with this profile; one of another, such as `release`, is linked sooner.
PACKAGE_PROFILE ?= dist
# The target of `make dist-static`, and those of `make packages`.
HERE = $(shell packaging/here musl)
TARGET_TRIPLE ?= $(HERE)
TARGET_TRIPLES ?= x86_64-unknown-linux-musl aarch64-unknown-linux-musl armv7-unknown-linux-musleabihf
STATIC = $(TARGET)/packages/hopline-$(shell packaging/version)-$(HERE).tar.zst

.PHONY: help
help: ## List these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile

# The simulator and the lab: no real sockets, no Parquet. If `make build` ran before, keep all features.
.PHONY: demo
demo: tools ## Build the simulator, then compare four TCP windows over a chain of four wireless hops
	cargo build --locked --release --package hopline-cli $(if $(wildcard $(TARGET)/release/.whole),,--no-default-features)
	@echo
	$(TARGET)/release/hopline compare scenarios/chain/scenario.toml --report $(TARGET)/demo.html
	@echo
	@echo 'That was scenarios/chain/scenario.toml; others lie beside it, and README.md says how to run your own network.'
	@echo 'The program is $(TARGET)/release/hopline; try --help. `make build` adds real sockets and Parquet.'

.PHONY: build
build: tools ## Build the program with all its commands into target/release/hopline
	cargo build --locked --release --package hopline-cli
	@touch $(TARGET)/release/.whole

.PHONY: dist
dist: tools ## Build the program as it is shipped, linked as a whole, into target/dist/hopline (10 minutes)
	cargo build --locked --profile dist --package hopline-cli

.PHONY: test
test: tools ## Run all tests, the fuzz targets on their seeds included
	cargo test --locked --workspace

.PHONY: explore
explore: tools ## Run all tests with new cases in the property tests
	@seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); \
	echo "To repeat: make test PROPTEST_RNG_SEED=$$seed"; \
	PROPTEST_RNG_SEED=$$seed cargo test --locked --workspace

.PHONY: check
check: lint build-times-check package tshark chromium iperf3 iptables nft programs-at-nodes test examples packaging-check quick qlog-schema fingerprints python-check ## What a change must pass: lint, tests, examples, packaging scripts, fingerprints, the Python package
	@command -v tshark > /dev/null || echo 'check: passed, but tshark was not there to decode captures' >&2
	@command -v chromium > /dev/null || echo 'check: passed, but chromium was not there to look at reports' >&2
	@command -v iptables > /dev/null || echo 'check: passed, but iptables was not there to translate addresses' >&2
	@command -v iperf3 > /dev/null || echo 'check: passed, but iperf3 was not there to measure with' >&2
	@command -v nft > /dev/null || echo 'check: passed, but nft was not there to set up rules' >&2
	@for program in $(PROGRAMS_AT_NODES); do command -v $$program > /dev/null \
		|| echo "check: passed, but $$program was not there to run at emulated nodes" >&2; done
	@[ ! -e $(TARGET)/packaging-skipped ] || echo 'check: passed, but not all packaging scripts were checked, for want of a tool' >&2
	@[ ! -e $(TARGET)/deny-skipped ] || echo 'check: passed, but cargo-deny was not there to check dependencies' >&2
	@python3 -c 'import duckdb, matplotlib, pandas, polars' 2> /dev/null || echo 'check: passed, but duckdb, matplotlib, pandas or polars was not there to run the snippets of the documentation' >&2
	@[ ! -e $(TARGET)/python/skipped ] || echo 'check: passed, but PyPI was not reached, and the Python package was not tested' >&2
	@[ -w /dev/net/tun ] && [ "$$(id -u)" = 0 ] || echo 'check: passed, but nothing was sent over real links: that needs root and /dev/net/tun' >&2

# The middleboxes without gateways, and streams with and without tokio; `quick` builds the command without features, and
# `make check-features` all combinations.
.PHONY: lint
lint: tools deny language rings ## Check format, lints, language, rings of files, documentation and dependencies
	@! grep -rnE '^(<{7}|>{7}) ' --include='*.md' --include='*.rs' --include='*.toml' --exclude-dir=target . \
		|| { echo 'lint: conflict markers, see above' >&2; exit 1; }
	cargo fmt --all --check
	cargo fmt --all --manifest-path bench/Cargo.toml --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked --package hopline-cli --no-default-features -- -D warnings
	for features in '' tokio; do \
		cargo clippy --locked --package hopline-streams --features "$$features" -- -D warnings; \
	done
	cargo clippy --locked --package hopline-middlebox -- -D warnings
	cargo clippy --locked $(VERSUS) --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps
	tools/check-layers
	tools/check-contract

.PHONY: language
language: ## Check that comments, pages and commit subjects have no more faults of language than counts.json allows
	@.ci/install python3 python3
	@cd tools/language && python3 -m unittest --quiet
	tools/language/check.py

.PHONY: rings
rings: ## Check that no crate has a ring of source files besides those of tools/module-rings/allowed.txt
	@.ci/install python3 python3
	@cd tools/module-rings && python3 -m unittest --quiet
	@tools/module-rings/rings.py --check > /dev/null

.PHONY: deny
deny: tools ## Check the licences, versions and sources of all dependencies, and known advisories (cargo-deny)
	@rm -f $(TARGET)/deny-skipped
	@.ci/deny $(TARGET) || { \
		[ $$? = 75 ] || exit 1; \
		touch $(TARGET)/deny-skipped; \
		echo 'Going on: dependencies were not checked.' >&2; \
	}

# Needs no network, unlike `cargo publish`, which queries the registry.
.PHONY: package
package: tools ## Build the published crates from their packages, without the rest of the repository
	$(FORGET_PACKAGES)
	cargo package --locked --allow-dirty --target-dir $(TARGET)/package $(PUBLISHED)

.PHONY: publish-dry-run
publish-dry-run: tools ## Do everything that publishing on crates.io does, apart from the upload
	$(FORGET_PACKAGES)
	cargo publish --dry-run --locked --allow-dirty --target-dir $(TARGET)/package $(PUBLISHED)

# Not a part of `make check`: `make lint` checks the features that the command is built with.
.PHONY: check-features
check-features: cargo-hack ## Check that the command and the published crates compile with every combination of their features
	$(WITH_TOOLS) cargo hack check --locked --feature-powerset --target-dir $(TARGET)/features --package hopline-cli $(PUBLISHED)

.PHONY: check-semver
check-semver: tools ## Check that the published crates have broken no API since the last release, or since BASELINE (a commit)
	@if [ -z "$(BASELINE)" ]; then \
		echo 'check-semver: nothing to compare with, as no version has been released. BASELINE=COMMIT compares with a commit.'; \
	else \
		$(MAKE) --no-print-directory cargo-semver-checks && \
		$(WITH_TOOLS) cargo semver-checks --baseline-rev "$(BASELINE)" $(PUBLISHED); \
	fi

.PHONY: tshark
tshark:
	@.ci/install tshark tshark || echo 'Going on: the tests that decode captures with it are ignored.' >&2

.PHONY: chromium
chromium:
	@.ci/install chromium chromium || echo 'Going on: the tests that look at reports with it are ignored.' >&2

.PHONY: iptables
iptables:
	@.ci/install iptables iptables || echo 'Going on: the test that translates addresses with it is ignored.' >&2

.PHONY: nft
nft:
	@.ci/install nft nftables || echo 'Going on: the tests of proxies that need it are ignored.' >&2

.PHONY: iperf3
iperf3:
	@.ci/install iperf3 iperf3 || echo 'Going on: the tests that measure with it are ignored.' >&2

# Programs that tests run at the nodes of an emulation; all packages are installed at once.
PROGRAMS_AT_NODES := ping curl babeld mosquitto mosquitto_pub wg wireguard-go
.PHONY: programs-at-nodes
programs-at-nodes:
	@for program in $(PROGRAMS_AT_NODES); do \
		command -v $$program > /dev/null && continue; \
		.ci/install $$program iputils-ping curl babeld mosquitto mosquitto-clients wireguard-tools wireguard-go \
			|| echo 'Going on: the tests that run it at emulated nodes are ignored.' >&2; \
		break; \
	done

# Whole workspace: a smaller selection would change features and recompile dependencies.
.PHONY: examples
examples: tools ## Run the examples of the published crates, and those of the documentation that take longer
	for example in $(EXAMPLES); do cargo run --quiet --locked --example $$example; done
	cargo test --locked --workspace --test real -- --ignored docs::

# `make test` has run them in debug.
.PHONY: fingerprints
fingerprints: tools ## Check that a release build has the fingerprints pinned by the tests
	cargo test --locked --release --package hopline-fingerprints

.PHONY: bench
bench: tools ## Measure the event loop, a MAC exchange and a TCP segment (criterion)
	cargo bench --locked --workspace --bench '*'

# Both build into target/, where the drivers look for the program.
.PHONY: versus-linux
versus-linux: tools ## Compare the preset linux with the kernel's TCP as it was measured, and write the table into docs/validation.md
	@.ci/install python3 python3
	CARGO_TARGET_DIR=target cargo build --locked --profile dist --package hopline-cli
	python3 bench/versus-linux/versus_linux.py --write docs/validation.md

.PHONY: versus-ns2
versus-ns2: tools ## Run every scenario in ns-2.35 too, and write docs/validation-tables.md (installs ns2)
	@.ci/install python3 python3
	@.ci/install ns ns2
	CARGO_TARGET_DIR=target cargo build --locked --profile dist --package hopline-cli
	python3 bench/versus-ns2/versus_ns2.py --write docs/validation-tables.md
	python3 docs/agreement.py

.PHONY: versus-transports
versus-transports: tools ## Measure transports over real links, and write docs/versus-transports-tables.md (root, an hour)
	cargo test --locked --release $(VERSUS) --package versus --package versus-transports
	cargo build --locked --release $(VERSUS) --package versus-transports
	$(TARGET)/release/versus-transports --out $(TARGET)/versus-transports --write docs/versus-transports-tables.md

.PHONY: bench-emulate
bench-emulate: tools iperf3 programs-at-nodes ## Measure how late emulations of three networks are, and proxies at a base station; write the tables into docs/emulate.md (root, six minutes)
	cargo build --locked --release --package hopline-cli
	HOPLINE=$(abspath $(TARGET))/release/hopline python3 bench/emulate/capacity.py --write docs/emulate.md
	HOPLINE=$(abspath $(TARGET))/release/hopline python3 bench/emulate/base_station.py --write docs/emulate.md

.PHONY: versus-kernel
versus-kernel: tools programs-at-nodes ## Compare TCP of this kernel under emulation with simulated TCP, and write the table into docs/emulate.md (root, 20 minutes)
	cargo build --locked --release --package hopline-cli
	HOPLINE=$(abspath $(TARGET))/release/hopline python3 bench/emulate/agreement.py --measure --write docs/emulate.md

.PHONY: versus-virtual
versus-virtual: tools iperf3 programs-at-nodes uml ## Compare TCP of Linux in virtual time with that of this kernel and with simulated TCP, and write the tables into docs/virtual-time.md (root, two hours)
	cargo build --locked --release --package hopline-cli
	HOPLINE=$(abspath $(TARGET))/release/hopline python3 bench/emulate/wire.py --write docs/virtual-time.md
	HOPLINE=$(abspath $(TARGET))/release/hopline python3 bench/emulate/base_station.py --virtual --write docs/virtual-time.md
	HOPLINE=$(abspath $(TARGET))/release/hopline python3 bench/emulate/virtual.py --measure --write docs/virtual-time.md

# PEPsal is left out where its source cannot be had or built.
.PHONY: versus-proxies
versus-proxies: tools iptables ## Measure proxies in front of a lossy last hop, and write docs/versus-proxies-tables.md (root, half an hour)
	cargo test --locked --release $(VERSUS) --package versus --package versus-proxies
	cargo build --locked --release $(VERSUS) --package versus-proxies
	pepsal=$$(sh bench/pepsal/build.sh | tail -n 1); \
	$(TARGET)/release/versus-proxies $${pepsal:+--pepsal "$$pepsal"} --out $(TARGET)/versus-proxies --write docs/versus-proxies-tables.md

.PHONY: qlog-schema
qlog-schema: quick ## Read qlog files of every transport with the types of Cloudflare's crate qlog
	cargo build --locked --manifest-path bench/qlog/Cargo.toml --target-dir $(TARGET)/qlog
	HOPLINE=$(TARGET)/release/hopline QLOG_SCHEMA=$(TARGET)/qlog/debug/qlog-schema bench/qlog/check.sh

# Debian's compiler for the web comes with the standard library's source, which is built along.
# Call it by path, so that it never replaces rustup's compiler elsewhere.
.PHONY: wasm
wasm: tools ## Build simulator and scenario files for the browser, and check their fingerprints in Node (10 minutes; installs rustc-web)
	@.ci/install /usr/bin/cargo rustc-web cargo-web rust-web-src
	@.ci/install wasm-ld lld
	@.ci/install node nodejs
	cargo build --locked --release --package hopline-cli
	PATH=/usr/bin:/bin RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 \
		CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld /usr/bin/cargo build --locked --release -Zbuild-std=std,panic_abort \
		--target wasm32-unknown-unknown --manifest-path bench/wasm/Cargo.toml --target-dir $(abspath $(TARGET))/wasm
	HOPLINE=$(abspath $(TARGET))/release/hopline HOPLINE_WASM=$(abspath $(TARGET))/wasm/wasm32-unknown-unknown/release/hopline_wasm.wasm \
		node --test bench/wasm/fingerprints.test.mjs

.PHONY: wheel
wheel: tools ## Build the Python package with the command in it, for any Linux with glibc 2.17, into target/wheels
	python/dev/wheel $(WHEEL_PLATFORM) $(WHEEL_PROFILE) $(TARGET)

.PHONY: wheel-musl
wheel-musl: tools ## Build the Python package for Linux with musl, such as Alpine (installs rustc-web)
	python/dev/wheel musllinux $(WHEEL_PROFILE) $(TARGET)

.PHONY: wheel-windows
wheel-windows: tools ## Build the Python package for Windows, without the command (installs rustc-web and gcc-mingw-w64)
	python/dev/wheel windows $(WHEEL_PROFILE) $(TARGET)

.PHONY: dist-static
dist-static: tools ## Build the static program with manual pages, completions and units for TARGET_TRIPLE, into target/packages
	packaging/needs $(TARGET) "$(TARGET_TRIPLE)"
	packaging/static/build "$(TARGET_TRIPLE)" $(PACKAGE_PROFILE) $(TARGET)

.PHONY: deb
deb: tools ## Build the package for Debian 12 and later, Ubuntu 22.04 and later, into target/packages
	packaging/needs $(TARGET) deb
	packaging/deb/build $(PACKAGE_PROFILE) $(TARGET)

.PHONY: image
image: tools ## Build the OCI images lab and proxy, from the static program, into target/packages (root; installs buildah)
	packaging/needs $(TARGET) "$(HERE)" image
	packaging/static/build "$(HERE)" $(PACKAGE_PROFILE) $(TARGET)
	packaging/image/build $(STATIC) $(TARGET)

.PHONY: dist-source
dist-source: ## Pack the source of the last commit, into target/packages
	packaging/source $(TARGET)

.PHONY: dist-openwrt
dist-openwrt: ## Pack the source and the folder of a feed for OpenWrt, into target/packages
	packaging/openwrt/build $(TARGET)

# Images are built from the static program for this machine.
.PHONY: packages
packages: tools ## Build every package and SHA256SUMS into target/packages (an hour; root)
	@$(if $(filter $(HERE),$(TARGET_TRIPLES)),,echo 'packages: TARGET_TRIPLES lacks $(HERE), of which images are built' >&2; exit 2)
	packaging/needs $(TARGET) $(TARGET_TRIPLES) deb wheel image source
	rm -f $(TARGET)/packages/hopline[-_]* $(TARGET)/packages/SHA256SUMS
	for triple in $(TARGET_TRIPLES); do packaging/static/build $$triple $(PACKAGE_PROFILE) $(TARGET); done
	packaging/deb/build $(PACKAGE_PROFILE) $(TARGET)
	cp "$$(python/dev/wheel manylinux $(PACKAGE_PROFILE) $(TARGET))" $(TARGET)/packages
	packaging/image/build $(STATIC) $(TARGET)
	packaging/openwrt/build $(TARGET)
	packaging/sums $(TARGET)

.PHONY: packages-test
packages-test: tools ## Install every package of target/packages into something clean, run the comparison of `make demo` there (root, ten minutes)
	packaging/tests/all $(TARGET) $(TARGET_TRIPLES)

.PHONY: references
references: tools ## Write the tables of keys and figures that are made from the program: docs, scenarios, the C header, UCI
	UPDATE_REFERENCE=1 cargo test --quiet --locked -p hopline-lab --test it -- scenarios::the_references metrics::
	UPDATE_REFERENCE=1 cargo test --quiet --locked -p hopline-daemon config::tests::the_reference_has_every_key
	UPDATE_REFERENCE=1 cargo test --quiet --locked -p hopline-capi --test header
	cargo run --quiet --locked -p hopline-cli -- schema proxy | packaging/openwrt/keys > $(TARGET)/uci-keys
	mv $(TARGET)/uci-keys packaging/openwrt/hopline/files/uci-keys

# A few seconds after `make test`, which has built the same program: `cargo build` would compile dependencies again, with other features.
# shellcheck is all that is installed. 75: a tool is missing.
.PHONY: packaging-check
packaging-check: tools ## Check the scripts of packages, versions, and the refusals of `make release`, without building a package
	cargo test --quiet --locked --workspace --no-run --test real
	@rm -f $(TARGET)/packaging-skipped
	@packaging/tests/check $(TARGET)/debug/hopline || { \
		[ $$? = 75 ] || exit 1; \
		touch $(TARGET)/packaging-skipped; \
		echo 'Going on: not all packaging scripts were checked.' >&2; \
	}

# Nothing is published; packaging/release says what is still to do.
.PHONY: release
release: ## Check that tree, changelog and tag are those of VERSION, then build every package
	packaging/release '$(VERSION)'
	$(MAKE) packages PACKAGE_PROFILE=dist

# Packagers set DESTDIR, and LIBDIR where libraries do not go to PREFIX/lib.
.PHONY: install-c
install-c: tools ## Build the C library and install it with header and hopline.pc below PREFIX (/usr/local)
	cargo build --locked --profile dist --package hopline-capi
	DESTDIR=$(DESTDIR) LIBDIR=$(LIBDIR) crates/capi/install $(TARGET)/dist $(PREFIX) \
		"$$(cargo metadata --locked --no-deps --format-version 1 | sed 's/.*"name":"hopline-capi","version":"\([^"]*\)".*/\1/')"

.PHONY: cluster-overhead
cluster-overhead: tools ## Measure what it costs to have runs made by Dask and Ray, and write docs/cluster-tables.md (10 minutes)
	wheel=$$(python/dev/wheel $(WHEEL_PLATFORM) $(WHEEL_PROFILE) $(TARGET)); python/dev/install "$$wheel" $(TARGET)
	$(TARGET)/python/test/bin/python bench/cluster/overhead.py --command $(TARGET)/python/test/bin/hopline --write docs/cluster-tables.md

.PHONY: python-test
python-test: tools ## Build the wheel, install it into a fresh environment, and run the Python tests there
	wheel=$$(python/dev/wheel $(WHEEL_PLATFORM) $(WHEEL_PROFILE) $(TARGET)); python/dev/test "$$wheel" $(TARGET)

# Linked for this machine only, which needs less; 75: PyPI is not reached.
.PHONY: python-check
python-check: tools
	@mkdir -p $(TARGET)/python; rm -f $(TARGET)/python/skipped; \
	{ wheel=$$(python/dev/wheel here release $(TARGET)) && python/dev/test "$$wheel" $(TARGET) -q; } || { \
		[ $$? = 75 ] || exit 1; \
		touch $(TARGET)/python/skipped; \
		echo 'Going on: the Python tests were skipped.' >&2; \
	}

# Type-checks only; no linking. It shows that the lab calls nothing that these systems lack.
.PHONY: check-platforms
check-platforms: tools ## Check that the Python package would compile for Windows and macOS (installs rustc-web)
	@.ci/install /usr/bin/cargo rustc-web cargo-web rust-web-src
	for platform in x86_64-pc-windows-msvc aarch64-apple-darwin x86_64-apple-darwin; do \
		PATH=/usr/bin:/bin RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 \
			/usr/bin/cargo check --locked -Zbuild-std=std,panic_unwind --package hopline-python \
			--target $$platform --target-dir $(TARGET)/python/platforms; \
	done

.PHONY: must-hold
must-hold: tools ## Send 10 MB by TPA and TPA-wide through everything that they must stand, over real links, and print how long it took (root, eleven minutes)
	cargo test --locked --package hopline-testkit --test real -- --ignored --test-threads=20 must_hold::

.PHONY: uml
uml: ## Build the user-mode Linux kernel of crates/virtual-time from the source of Debian, into the user's cache (ten minutes)
	tools/uml/build $(TARGET)/uml

.PHONY: virtual-time-test
virtual-time-test: tools uml ## Test kernels at simulated nodes, in virtual time
	cargo test --locked --release --package hopline-virtual-time --test real
	cargo test --locked --release --package hopline-cli --test real -- virtual_time::

.PHONY: drills
drills: tools iptables nft ## Kill, restart, cut off, flood and rebind real transfers, count what is lost, and print the tables of recipes for proxies, docs/c.md and docs/tcp.md (root, an hour)
	cargo test --locked --release --package hopline-cli --test real -- --ignored --nocapture --test-threads=4 drills::
	cargo test --locked --release --package hopline-cli --test real -- --ignored --nocapture proxy::
	cargo test --locked --release --package hopline-streams --test real -- --ignored --nocapture --test-threads=1 fallback_over_link::
	cargo test --locked --release --package hopline-middlebox --test real -- --ignored --nocapture --test-threads=1 stacks_over_links_that_reorder

# The picture is left as it is where there is no Chromium.
.PHONY: docs
docs: tools chromium ## Put what the program prints now into the documentation, and the report of `make demo` into docs/report.png
	UPDATE_DOCS=1 cargo test --locked --package hopline-cli --test real -- --include-ignored docs::
	$(TARGET)/debug/hopline compare -q scenarios/chain/scenario.toml --report $(TARGET)/demo.html > /dev/null
	! command -v chromium > /dev/null || chromium --headless --no-sandbox --disable-gpu --disable-background-networking \
		--disable-sync --hide-scrollbars --window-size=1280,1500 --user-data-dir=$(abspath $(TARGET))/chromium \
		--screenshot=docs/report.png file://$(abspath $(TARGET))/demo.html

# What `make demo` builds and prints, and the sentence about what is not in it.
.PHONY: quick
quick: tools
	@if [ -e $(TARGET)/release/.whole ]; then \
		rm $(TARGET)/release/.whole; tools/check-quick-build $(TARGET); $(MAKE) build; \
	else \
		tools/check-quick-build $(TARGET); \
	fi

.PHONY: build-times
build-times: tools ## Measure what make demo, build, test and .ci/run take from nothing, and write the table in CONTRIBUTING.md (an hour)
	tools/build-times CONTRIBUTING.md

.PHONY: build-times-check
build-times-check:
	tools/check-build-times

# The sanitizer and the counters of coverage need options that only a nightly compiler takes, or the pinned one that is told to
# (RUSTC_BOOTSTRAP): inputs are replayed by the compiler that the tests use. In a folder of its own, as the variable has cargo build
# libraries again.
.PHONY: fuzz
fuzz: export RUSTC_BOOTSTRAP := 1
fuzz: cargo-fuzz ## Fuzz every target, or FUZZ_TARGETS, for FUZZ_SECONDS (30) each, with libFuzzer and AddressSanitizer
	for target in $(or $(FUZZ_TARGETS),$$($(CARGO_FUZZ) list)); do \
		mkdir -p fuzz/corpus/$$target; \
		$(CARGO_FUZZ) run --dev --features libfuzzer --target-dir $(TARGET)/fuzz $$target fuzz/corpus/$$target fuzz/seeds/$$target \
			-- -max_total_time=$(FUZZ_SECONDS) -max_len=2048 -print_final_stats=1 || exit 1; \
	done

# That of the machine, if there is one.
.PHONY: cargo-fuzz
cargo-fuzz: tools
	@cargo fuzz --version > /dev/null 2>&1 || [ -x $(TARGET)/tools/bin/cargo-fuzz ] \
		|| cargo install --quiet --locked --root $(TARGET)/tools --version $(CARGO_FUZZ_VERSION) cargo-fuzz \
		|| { echo 'cargo-fuzz is missing, and cargo could not install it' >&2; exit 1; }

.PHONY: cargo-hack
cargo-hack: tools
	@cargo hack --version > /dev/null 2>&1 || [ -x $(TARGET)/tools/bin/cargo-hack ] \
		|| cargo install --quiet --locked --root $(TARGET)/tools --version $(CARGO_HACK_VERSION) cargo-hack \
		|| { echo 'cargo-hack is missing, and cargo could not install it' >&2; exit 1; }

.PHONY: cargo-semver-checks
cargo-semver-checks: tools
	@cargo semver-checks --version > /dev/null 2>&1 || [ -x $(TARGET)/tools/bin/cargo-semver-checks ] \
		|| cargo install --quiet --locked --root $(TARGET)/tools --version $(CARGO_SEMVER_CHECKS_VERSION) cargo-semver-checks \
		|| { echo 'cargo-semver-checks is missing, and cargo could not install it' >&2; exit 1; }

# The Python API is read from its sources: nothing is compiled. Where HOPLINE_PYTHON names a Python with hopline and what
# `make python-test` installs beside it, notebooks are run, and the site has what they show.
.PHONY: site
site: $(TARGET)/site-venv/done ## Build the documentation as a site into target/site (fetches Sphinx from PyPI)
	rm -rf $(TARGET)/site $(TARGET)/site-doctrees $(TARGET)/site-notebooks; mkdir -p $(TARGET)/site-notebooks
	@if [ -n "$(HOPLINE_PYTHON)" ]; then for notebook in python/notebooks/*.ipynb; do \
		"$(HOPLINE_PYTHON)" -m jupyter execute "$$notebook" --output="$(abspath $(TARGET))/site-notebooks/$$(basename "$$notebook")" \
			2> $(TARGET)/site-notebooks/log || { cat $(TARGET)/site-notebooks/log >&2; exit 1; }; \
	done; fi
	HOPLINE_NOTEBOOKS=$(TARGET)/site-notebooks $(TARGET)/site-venv/bin/python -m sphinx -q -W --keep-going -b html -d $(TARGET)/site-doctrees -c docs/site . $(TARGET)/site
	@echo 'The site begins at $(TARGET)/site/index.html'

# Debian has the module venv, but not always what it needs.
$(TARGET)/site-venv/done: docs/site/requirements.txt
	@.ci/install python3 python3 python3-venv
	@python3 -c 'import ensurepip' 2> /dev/null || .ci/install ensurepip python3-venv
	python3 -m venv --clear $(TARGET)/site-venv
	$(TARGET)/site-venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement docs/site/requirements.txt
	touch $@

.PHONY: clean
clean: ## Remove everything that was built
	rm -rf $(TARGET) fuzz/corpus fuzz/artifacts

.PHONY: tools
tools:
	@command -v cargo > /dev/null || { echo 'cargo is missing: https://rustup.rs installs it' >&2; exit 1; }
	@command -v cc > /dev/null || { echo 'a C linker is missing: apt-get install gcc libc6-dev' >&2; exit 1; }
