# What there is to do with this repository. `make` alone lists it. The work itself is done by cargo and by the programs in scripts/ and bench/.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup build wasm wasm-all demo pages book test package reproduce reproduce-quick failures liars mutants mutants-base robust-parts quick lint fmt audit bench bench-linux bench-page bench-pep bench-instructions check-reference test-kernels test-python wheels clean

# Where rustup puts cargo; a shell that has not been restarted since does not know it.
export PATH := $(PATH):$(HOME)/.cargo/bin

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
XCPNET := $(TARGET)/release/xcpnet
OLDEST_RUST = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
C_SOURCES = $(shell git ls-files 'engine/*.[ch]' 'bpf/*.[ch]' 'crates/*.[ch]' 'scripts/*.[ch]' 'bench/*.c' 'fuzz/*.c')
# Rust of packages outside the workspace, which `cargo fmt --all` does not see.
OUTSIDE = $(wildcard fuzz/fuzz_targets/*.rs bench/pep/relays/src/*.rs bench/pep/relays/src/bin/*.rs)
# Shell programs, by their first line, and what they read in.
SCRIPTS = $(shell git ls-files '*.sh'; git grep -lI '^.!/' | xargs -r awk 'FNR == 1 && /^.!.*[\/ ](ba|da)?sh( |$$)/ { print FILENAME } { nextfile }')

# What tests skipped, one line each (crates/xcp-skip); summed up at the end of `make test`.
SKIPPED := $(abspath $(TARGET))/skipped
# $(call skip,NEEDED,MISSED): one more of them.
skip = mkdir -p "$(TARGET)" && echo "SKIPPED ($1): $2" | tee -a "$(SKIPPED)" && \
    case ",$${XCPNET_REQUIRE-}," in *",$1,"*) echo "XCPNET_REQUIRE has $1" >&2; exit 1 ;; esac

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what building, testing and benchmarking need
	scripts/setup all

build: ## build the release binary
	@scripts/setup build
	@$(MAKE) --no-print-directory wasm
	$(CARGO) build --release --locked --package xcpnet

wasm: ## build the engine that playground pages run, for the next build of xcpnet to include; the same bytes wherever it is built
	@CARGO="$(CARGO)" scripts/build-wasm

wasm-all: wasm ## compare the engine of pages with the native simulator: all variants of all experiments in full (make test: one of each, short)
	$(CARGO) test --workspace --locked --test same_as_native -- --ignored --nocapture

pages: build ## make the playground pages of docs/teach.md: out/pages
	@mkdir -p out/pages
	@for file in docs/teach/*.toml; do $(XCPNET) playground $$file --out out/pages/$$(basename $$file .toml).html; done

book: pages ## build docs/ as a site with offline search and the playground pages, and check its links: out/book
	@scripts/setup book
	scripts/build-book

demo: build ## run flows that guests and then TCP join, under the robust law, XCP and CUBIC; as root also on the real kernel
	@$(XCPNET) run docs/demo.toml --out out/demo
	@echo
	@scripts/demo-linux $(XCPNET) out/demo-linux
	@echo "The report, one file that needs no network: $(CURDIR)/out/demo/report.html"

test: ## run everything that must pass before a change lands
	@scripts/setup test
	@mkdir -p "$(TARGET)" && rm -f "$(SKIPPED)"
	@$(MAKE) --no-print-directory -j2 wasm lint # each leaves a processor idle at times
	XCPNET_SKIPPED="$(SKIPPED)" $(CARGO) test --workspace --locked
	@if command -v python3 >/dev/null; then \
	    echo "the judge of the stock kernels"; \
	    python3 -B -m unittest discover -q -s scripts/kernels -p '*_test.py'; \
	else $(call skip,python3,what judges the stock kernels); fi
	@$(MAKE) --no-print-directory quick XCPNET="$(TARGET)/debug/xcpnet"
	@scripts/skipped "$(SKIPPED)"

package: build ## make target/deb/xcpnet_VERSION_ARCH.deb, tried in a clean root if one can be made; and the crates, as they would be published
	@scripts/setup package
	scripts/package $(XCPNET) $(TARGET)/deb
	$(CARGO) package --workspace --exclude xcp-skip --exclude xcp-mutants --locked --no-verify --allow-dirty

reproduce: build ## check every figure of the papers against what they claim: out/reproduce/report.html (at most half an hour; the second time only what has changed)
	$(XCPNET) reproduce --out out/reproduce

failures: build ## make the tables of failures: docs/failures.md and docs/beyond.md
	for table in failures beyond; do \
	    $(XCPNET) reproduce $$table --markdown > docs/$$table.md.new && mv docs/$$table.md.new docs/$$table.md || exit; \
	done

liars: build ## make the table of what lying senders gain, without and with a policer: docs/liars.md
	$(XCPNET) reproduce liars --markdown > docs/liars.md.new
	mv docs/liars.md.new docs/liars.md

# FIGURES="zhang-henderson-2005 ixcp/fig02" runs only those, and writes no table.
mutants: ## run wrong laws and senders against the claims of reproduce-quick: the table of docs/reproduce.md (only what has changed; everything takes some two hours of one processor)
	@$(MAKE) --no-print-directory mutants-base
	$(CARGO) build --release --locked --package xcp-mutants --features mutants
	$(TARGET)/release/xcp-mutants --record crates/xcp-mutants/noticed.txt $(if $(AGAIN),--again) --write docs/reproduce.md $(FIGURES)

robust-parts: ## the robust law with one part left out or one constant half or double, in every row of the tables of failures: the table of docs/robust-parts.md (half an hour on two processors)
	@$(MAKE) --no-print-directory mutants-base
	$(CARGO) build --release --locked --package xcp-mutants --features mutants
	$(TARGET)/release/xcp-mutants --parts --record crates/xcp-mutants/parts.txt $(if $(AGAIN),--again) --write docs/robust-parts.md $(PARTS)

# That what is built with all that can be wrong is right while nothing is chosen.
mutants-base:
	$(CARGO) test --quiet --locked --package xcp-engine --features mutants

reproduce-quick:
	$(CARGO) build --release --locked --package xcpnet
	@$(MAKE) --no-print-directory quick

# Tells nothing but that it held; otherwise everything. Within `make test` by the program that the
# tests have been run with, which also notices a sum that overflows; to build the one that is
# published takes longer than all of this.
quick:
	@echo "$(XCPNET) reproduce --quick"; told=$$(mktemp); \
	if $(XCPNET) reproduce --quick >"$$told" 2>&1; then tail -n 1 "$$told"; rm -f "$$told"; \
	else status=$$?; cat "$$told"; rm -f "$$told"; exit $$status; fi

lint: ## check formatting and lints: Rust and its doc comments, C, shell and Python
	$(CARGO) fmt --all --check
	rustfmt --check --edition 2024 $(OUTSIDE)
	@if command -v clang-format >/dev/null; then \
	    echo "clang-format --dry-run --Werror"; clang-format --dry-run --Werror $(C_SOURCES); \
	else $(call skip,clang-format,C formatting); fi
	@! LC_ALL=C.UTF-8 grep -nE '^.{101}' $(C_SOURCES) || { echo "C: lines of more than 100 columns, which clang-format leaves in comments" >&2; exit 1; }
	@if command -v shellcheck >/dev/null; then \
	    echo "shellcheck $(SCRIPTS)"; shellcheck $(SCRIPTS); \
	else $(call skip,shellcheck,shell scripts); fi
	@if command -v ruff >/dev/null; then \
	    echo "ruff check, ruff format --check"; ruff check --quiet && ruff format --check --quiet; \
	else $(call skip,ruff,the style of Python (pip install ruff; make test-python has it)); fi
	@if command -v mypy >/dev/null; then \
	    echo "scripts/check-types"; scripts/check-types; \
	else $(call skip,mypy,the types of Python (pip install mypy; make test-python has it)); fi
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --package xcp-engine --features mutants --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

fmt: ## format Rust, C and Python (ruff: pip install ruff)
	$(CARGO) fmt --all
	rustfmt --edition 2024 $(OUTSIDE)
	clang-format -i $(C_SOURCES)
	@if command -v ruff >/dev/null; then ruff format; else echo "make fmt: no ruff, Python stays as it is"; fi

audit: ## check licences, sources and known vulnerabilities of everything that xcpnet is made of, and the oldest Rust that it supports
	@command -v cargo-deny >/dev/null || { echo "make audit: cargo install --locked cargo-deny" >&2; exit 1; }
	cargo deny --locked check licenses bans sources
	@if cargo deny --locked fetch db; then cargo deny --locked check advisories; \
	else $(call skip,advisory-db,known faults: their database cannot be had); fi
	rustup toolchain install --profile minimal $(OLDEST_RUST)
	cargo +$(OLDEST_RUST) check --workspace --all-targets --locked --target-dir "$(TARGET)/rust-$(OLDEST_RUST)"

bench: ## measure speed, memory and how they scale, compared with ns-2 and ns-3 if they are installed (a quarter of an hour)
	@scripts/setup bench
	$(CARGO) build --release --locked --package xcpnet
	bench/run --xcpnet $(XCPNET)

bench-linux: ## check XCP on real kernel TCP against its goals, compared with cubic, bbr and the simulator (root, half an hour, an idle machine)
	@scripts/setup build
	$(CARGO) build --release --locked --package xcpnet
	bench/linux/run --xcpnet $(XCPNET)

bench-page: build ## measure how soon a playground page shows its first picture, and a slider's move (Chromium, node; two minutes, an idle machine)
	bench/page.mjs --xcpnet $(XCPNET)

# PARTS="sizes loss" runs only those; bench/pep/run --help names them.
bench-pep: ## measure the proxy across a long link, compared with no proxy and with HAProxy: curl, nginx, iperf3 (root, an hour, an idle machine)
	@scripts/setup bench-pep
	$(CARGO) build --release --locked --package xcpnet
	$(CARGO) build --release --locked --package xcp-lab --example wire
	bench/pep/run --xcpnet $(XCPNET) --wire $(TARGET)/release/examples/wire $(PARTS)

# All kernels write the table of docs/linux.md; KERNELS="6.12 newest" runs only those and leaves it. MORE has other options of the script.
test-kernels: ## boot Debian's stock kernels and try everything on each: the table of docs/linux.md (qemu, no root; half an hour at most)
	@scripts/setup kernels
	$(CARGO) build --release --locked --package xcpnet
	scripts/test-kernels --xcpnet $(XCPNET) $(if $(KERNELS),$(KERNELS),--write docs/linux.md) $(MORE)

test-python: ## test the Python package in a venv: types, examples, executors, a killed worker, S3, notebooks (PYTEST_ALL=1: every experiment)
	@scripts/setup build
	scripts/test-python

wheels: ## build Python wheels for x86-64 and ARM64, for every Linux with glibc 2.17 or later, and try them where possible: python/dist
	@scripts/setup build
	scripts/wheels

bench-instructions: ## count instructions per packet and compare them with the baseline in bench/instructions.txt
	bench/instructions

check-reference: ## compare results with ns-2's and with the closed forms; with ns-2 also write the table of docs/reproduce.md
	@scripts/setup reference
	$(CARGO) build --release --locked --package xcpnet
	bench/reference --xcpnet $(XCPNET) $$(command -v ns >/dev/null && echo --write docs/reproduce.md)

clean: ## remove what building and running made
	$(CARGO) clean
	rm -rf out python/.venv python/dist crates/xcpnet/engine/engine.wasm.gz
