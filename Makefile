# Every target first runs deploy/setup.sh, which installs what is missing and is silent when nothing is.
# ARGS go through:  make run ARGS="--for 5s --frame imix"   make test ARGS="unit miri"

SHELL := /bin/bash
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
ARGS ?=

.PHONY: help run test test-full bench fmt clean setup check-setup

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

run: ## set up, then `ringwright demo`: packets through two software NICs, every one accounted for
	@deploy/setup.sh run
	@cargo run --release -p ringwright -- demo $(ARGS)

test: ## set up, then all tests; ARGS="unit miri" for some parts
	@deploy/setup.sh test
	@deploy/test.sh $(ARGS)

test-full: ## the same for longer: fuzzing, loom without a bound, more schedules under Miri
	@deploy/setup.sh test
	@deploy/test.sh --full $(ARGS)

bench: ## set up, then the benchmarks: all, in three minutes, or ARGS="null", "demo --frame imix", "--help"
	@deploy/setup.sh test
	@cargo build --release -p ringwright -p ringwright-bench --bins
	@cargo run --release -p ringwright-bench -- $(ARGS)

setup: ## install what building, running and testing need
	@deploy/setup.sh test

check-setup: ## list what is missing, change nothing
	@deploy/setup.sh --check test

fmt: ## format every source file
	@cargo fmt --all
	@for f in bench/fuzz bench/peers; do if [ -f $$f/Cargo.toml ]; then cargo fmt --manifest-path $$f/Cargo.toml; fi; done

clean: ## remove what builds made
	@cargo clean
	@rm -rf bench/fuzz/target bench/peers/target
