#!/usr/bin/env bash
# Installs what Ringwright needs on Debian and Ubuntu. Safe to run again: it changes only what is missing, and says nothing when nothing is.
#
#   deploy/setup.sh [--check] [run|test]
#
#   run      (default) what it takes to build and run `ringwright demo`: a C linker, Rust, and huge pages if they may be had
#   test     also what the test parts need: valgrind, DPDK, a nightly Rust with Miri, the aarch64 target, ...
#   --check  change nothing, list what is missing, exit 1 if anything is
#
#   RINGWRIGHT_HUGEPAGES=MIB   2 MiB pages to reserve, in MiB over all nodes (default 256 for run, 512 for test); 0 leaves them alone
#
# Exit codes: 0 ready (things that only some test parts need may be missing: they are named), 1 not ready, 2 wrong usage.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
level=run
check=no
fail_usage() {
    printf 'setup: %s\nusage: deploy/setup.sh [--check] [run|test]\n' "$1" >&2
    exit 2
}
for arg in "$@"; do
    case $arg in
    run | test) level=$arg ;;
    --check) check=yes ;;
    -h | --help)
        sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *) fail_usage "unknown argument '$arg'" ;;
    esac
done

# rustup puts cargo here, but only a new login shell knows it.
PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
export PATH

say() { printf 'setup: %s\n' "$*"; }
hard=() # without these the level cannot work
soft=() # without these something is skipped or slower
missing_hard() { hard+=("$1") && say "missing: $1"; }
missing_soft() { soft+=("$1") && say "missing: $1"; }
has() { command -v "$1" >/dev/null 2>&1; }
# A program for administrators: their folders are not on everyone's path.
has_sbin() { PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin has "$1"; }

# How to become root: root, sudo, or none.
root_way() {
    if [[ $EUID -eq 0 ]]; then
        echo root
    elif has sudo && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
        echo sudo
    else
        echo none
    fi
}
way=$(root_way)
as_root() {
    case $way in
    root) "$@" ;;
    sudo) sudo "$@" ;;
    *) return 1 ;;
    esac
}

# --- Debian packages: what is missing is gathered first, so that there is one update and one install ---
debs=()
whys=()
tests=()
need_deb() { # PACKAGE WHY TEST...: wants PACKAGE when the TEST command fails
    local package=$1 why=$2
    shift 2
    "$@" >/dev/null 2>&1 && return
    debs+=("$package")
    whys+=("$package ($why)")
    tests+=("$*")
}
install_debs() {
    local i log still=()
    [[ ${#debs[@]} -gt 0 ]] || return 0
    if [[ $check == no && $way != none ]] && has apt-get; then
        say "installing ${debs[*]}"
        log=$(mktemp)
        as_root apt-get update -qq >"$log" 2>&1 </dev/null || true
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            -o DPkg::Lock::Timeout=120 "${debs[@]}" >>"$log" 2>&1 </dev/null || tail -n 5 "$log" >&2
        rm -f "$log"
        hash -r
    fi
    for i in "${!debs[@]}"; do
        # shellcheck disable=SC2086  # the words of a test command
        ${tests[i]} >/dev/null 2>&1 && continue
        still+=("${debs[i]}")
        case ${debs[i]} in
        build-essential | ca-certificates) missing_hard "${whys[i]}" ;;
        *) missing_soft "${whys[i]}" ;;
        esac
    done
    [[ ${#still[@]} -eq 0 ]] || say "to install: sudo apt-get update && sudo apt-get install ${still[*]}"
}

# --- Rust ---
rust_min=$(sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' "$here/../Cargo.toml" | head -n 1)
rust_version() { rustc --version 2>/dev/null | sed -n 's/^rustc \([0-9]*\.[0-9]*\).*/\1/p'; }
rust_ok() {
    has cargo && [[ -n $(rust_version) ]] && printf '%s\n%s\n' "$rust_min" "$(rust_version)" | sort -C -V
}
rust_advice() {
    say "to get it: the installer at https://rustup.rs, then 'rustup toolchain install stable'; where toolchains cannot be downloaded, unpack"
    say "a standalone Rust $rust_min or newer and run its install.sh; then run this again"
}
need_rust() {
    rust_ok && return
    if [[ $check == no ]]; then
        # A cargo of the distribution's own is left alone: replacing it is its owner's choice.
        if ! has rustup && ! has cargo && has apt-cache && [[ $way != none ]]; then
            as_root apt-get update -qq >/dev/null 2>&1 </dev/null || true
            if apt-cache policy rustup 2>/dev/null | grep -q 'Candidate: [0-9]'; then
                say "installing rustup"
                as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=120 rustup >/dev/null </dev/null || true
                hash -r
            fi
        fi
        if has rustup; then
            say "installing the stable Rust toolchain"
            rustup toolchain install stable --profile minimal -c rustfmt -c clippy >/dev/null 2>&1 || true
            rustup default >/dev/null 2>&1 || rustup default stable >/dev/null 2>&1 || true
        fi
        rust_ok && return
    fi
    if has cargo; then
        missing_hard "Rust $rust_min or newer (found $(rust_version || true))"
    else
        missing_hard "Rust $rust_min or newer (no cargo found)"
    fi
    rust_advice
}
# Rust's parts are looked for as files: asking rustup takes longer than all other checks together.
need_component() { # TOOLCHAIN PATH-IN-SYSROOT WHY RUSTUP-ARGUMENTS...
    local toolchain=$1 path=$2 why=$3 root
    shift 3
    root=$(rustc ${toolchain:+"+$toolchain"} --print sysroot 2>/dev/null || true)
    [[ -n $root && -e $root/$path ]] && return
    if [[ $check == no ]] && has rustup; then
        say "adding Rust's $why"
        rustup "$@" ${toolchain:+--toolchain "$toolchain"} >/dev/null 2>&1 || true
        root=$(rustc ${toolchain:+"+$toolchain"} --print sysroot 2>/dev/null || true)
        [[ -n $root && -e $root/$path ]] && return
    fi
    missing_soft "Rust's $why; to add it: rustup $* ${toolchain:+--toolchain $toolchain}"
}
need_nightly() {
    rustc +nightly --version >/dev/null 2>&1 && return
    if [[ $check == no ]] && has rustup; then
        say "installing the nightly Rust toolchain"
        rustup toolchain install nightly --profile minimal -c miri -c rust-src >/dev/null 2>&1 && return
    fi
    missing_soft "a nightly Rust (test parts miri and fuzz); to add it: rustup toolchain install nightly --profile minimal -c miri -c rust-src"
}

# --- Huge pages: per node, never fewer than there are ---
reserve_node() { # FILE PAGES
    local file=$1 want=$2 have node
    have=$(<"$file")
    ((have >= want)) && return
    node=$(sed -n 's:.*/node/\(node[0-9]*\)/.*:\1:p' <<<"$file")
    if [[ $check == no ]]; then
        as_root sh -c "echo $want >$file" 2>/dev/null || true
        have=$(<"$file")
        if ((have >= want)); then
            say "reserved $want huge pages of 2 MiB${node:+ on $node}"
            return
        fi
    fi
    missing_soft "huge pages${node:+ on $node}: $have of 2 MiB reserved, $want wanted (without them everything runs, on 4 KiB pages and slower)"
    say "to reserve them: echo $want | sudo tee $file"
}
available_kib() { awk '/^MemAvailable:/ { kib = $2 } END { print kib + 0 }' /proc/meminfo 2>/dev/null || echo 0; }
need_hugepages() {
    local default=256 mib pages each file available
    [[ $level == test ]] && default=512
    mib=${RINGWRIGHT_HUGEPAGES:-$default}
    [[ $mib =~ ^[0-9]{1,7}$ ]] || fail_usage "RINGWRIGHT_HUGEPAGES is a number of MiB, not '$mib'"
    ((mib == 0)) && return
    local files=()
    for file in /sys/devices/system/node/node[0-9]*/hugepages/hugepages-2048kB/nr_hugepages; do
        [[ -r $file ]] && files+=("$file")
    done
    if [[ ${#files[@]} -eq 0 ]]; then # a kernel without NUMA
        file=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
        if [[ ! -r $file ]]; then
            missing_soft "huge pages of 2 MiB: this kernel or container has none (everything runs, on 4 KiB pages and slower)"
            return
        fi
        files=("$file")
    fi
    pages=$(((mib + 1) / 2))
    each=$(((pages + ${#files[@]} - 1) / ${#files[@]}))
    available=$(available_kib)
    for file in "${files[@]}"; do
        if (($(<"$file") < each)) && ((available / 1024 < mib * 4)) && [[ -z ${RINGWRIGHT_HUGEPAGES:-} ]]; then
            missing_soft "huge pages: $mib MiB would be over a quarter of the free memory; RINGWRIGHT_HUGEPAGES=$mib reserves them all the same"
            return
        fi
        reserve_node "$file" "$each"
    done
}

# Tests of 1 GiB pages take one, on the first node that has a gigabyte to spare.
need_giant_page() {
    local file total=0 files=() available
    [[ ${RINGWRIGHT_HUGEPAGES:-} == 0 ]] && return
    for file in /sys/devices/system/node/node[0-9]*/hugepages/hugepages-1048576kB/nr_hugepages; do
        [[ -r $file ]] || continue
        files+=("$file")
        total=$((total + $(<"$file")))
    done
    ((total > 0)) && return
    available=$(available_kib)
    if [[ ${#files[@]} -eq 0 ]]; then
        missing_soft "huge pages of 1 GiB: this processor, kernel or container has none (their tests are skipped)"
        return
    fi
    if [[ $check == no ]] && ((available > 6 * 1024 * 1024)); then
        for file in "${files[@]}"; do
            as_root sh -c "echo 1 >$file" 2>/dev/null || true
            if (($(<"$file") > 0)); then
                say "reserved one huge page of 1 GiB"
                return
            fi
        done
    fi
    missing_soft "a huge page of 1 GiB (its tests are skipped); to reserve one: echo 1 | sudo tee ${files[0]}"
}

need_deb build-essential "the linker" has cc
need_deb ca-certificates "fetching crates" test -s /etc/ssl/certs/ca-certificates.crt
if [[ $level == test ]]; then
    need_deb pkg-config "finding DPDK" has pkg-config
    need_deb python3 "test part demo" has python3
    need_deb iproute2 "test part net" has_sbin tc
    need_deb iputils-ping "test part net" has ping
    need_deb tcpdump "test part net" has_sbin tcpdump
    need_deb iperf3 "test part net" has iperf3
    need_deb ethtool "test part net" has_sbin ethtool
    need_deb valgrind "test part instructions" has valgrind
    need_deb shellcheck "test part scripts" has shellcheck
    need_deb g++ "test part fuzz" has g++
    need_deb dpdk-dev "the peers in bench" has dpdk-testpmd
    need_deb libdpdk-dev "the peers in bench" pkg-config --exists libdpdk
fi
install_debs
need_rust
if [[ $level == test ]] && rust_ok; then
    need_component "" bin/rustfmt "rustfmt (test part fmt)" component add rustfmt
    need_component "" bin/cargo-clippy "clippy (test part lint)" component add clippy
    need_component "" lib/rustlib/aarch64-unknown-linux-gnu "aarch64 target (test part cross)" target add aarch64-unknown-linux-gnu
    need_nightly
    if rustc +nightly --version >/dev/null 2>&1; then
        need_component nightly bin/cargo-miri "Miri (test part miri)" component add miri
        need_component nightly lib/rustlib/src/rust/library "library sources (test part miri)" component add rust-src
    fi
fi
need_hugepages
[[ $level == test ]] && need_giant_page

if [[ ${#hard[@]} -gt 0 ]]; then
    say "not ready: ${#hard[@]} needed to build"
    exit 1
fi
if [[ ${#soft[@]} -gt 0 ]]; then
    [[ $check == yes ]] && exit 1
    say "ready, without ${#soft[@]} of the above"
fi
