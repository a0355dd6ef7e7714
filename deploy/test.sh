#!/usr/bin/env bash
# Runs the tests, part by part, and sums them up.
#
#   deploy/test.sh [--full] [PART...]
#
#   fmt           rustfmt has nothing to change
#   scripts       shellcheck, and this runner's own counting
#   lint          clippy over everything, warnings are errors
#   unit          unit, integration and documentation tests of the workspace
#   cross         the workspace checks for aarch64
#   loom          the rings between cores under every interleaving loom finds
#   miri          undefined behaviour and data races, crate by crate
#   demo          the release binary: packets arrive, all accounted for; wrong usage is refused; a signal stops it cleanly
#   net           stations in network namespaces talk through ringwright run; with --full more of it, and a Linux bridge in its place
#   fuzz          each fuzz target for a few seconds over its corpus
#   instructions  instructions per packet under valgrind against the stored figures
#
#   --full        longer: fuzzing, loom without a bound, Miri over several schedules, tests marked #[ignore]
#
# Without a PART all of them run. A part that lacks a tool, and a test that prints `SKIPPED: reason`, count as skipped; with CI=true as failed.
# The last line is `N passed, N failed[, N skipped]`. Exit codes: 0 all passed, 1 something failed, 2 wrong usage.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
all_parts=(fmt scripts lint unit cross loom miri demo net fuzz instructions)
net_tests='package(ringwright) and binary(net)'
miri_crates=(ringwright-hw ringwright-meter ringwright-ring ringwright-mem ringwright-graph ringwright-ixgbe ringwright-ixgbe-model)
# Without --full, of drivers and models only what two threads share, and long frames over a wrapping ring.
miri_short='not (package(ringwright-ixgbe) or package(ringwright-ixgbe-model)) or binary(threads) or test(frames_of_all)'
part_limit=1500
full=no
ci=no
[[ ${CI:-} == true ]] && ci=yes
parts=()
usage() {
    printf 'test: %s\nusage: deploy/test.sh [--full] [PART...]; parts: %s\n' "$1" "${all_parts[*]}" >&2
    exit 2
}
for arg in "$@"; do
    case $arg in
    --full) full=yes ;;
    -h | --help)
        sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *)
        [[ " ${all_parts[*]} " == *" $arg "* ]] || usage "no part '$arg'"
        parts+=("$arg")
        ;;
    esac
done
[[ ${#parts[@]} -gt 0 ]] || parts=("${all_parts[@]}")

PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
export PATH
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}
target=${CARGO_TARGET_DIR:-target}
has() { command -v "$1" >/dev/null 2>&1; }

tmp=$(mktemp -d "${TMPDIR:-/tmp}/ringwright-test.XXXXXX")
group=    # process group of the running part
watchdog= # and of what ends it when it takes too long
clean() {
    [[ -n $watchdog ]] && kill -TERM -- "-$watchdog" 2>/dev/null
    [[ -n $group ]] && kill -TERM -- "-$group" 2>/dev/null
    rm -rf "$tmp"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- Counting ---
# From the text of a run: "passed failed", over cargo test's and nextest's closing lines.
count_tests() {
    sed 's/\x1b\[[0-9;]*m//g' "$1" | awk '
        /^test result: / { for (i = 2; i <= NF; i++) { if ($i ~ /^passed;/) p += $(i-1); if ($i ~ /^failed;/) f += $(i-1) } }
        /^ *Summary \[/ {
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^passed/) p += $(i-1)
                if ($i ~ /^failed/) f += $(i-1)
                if ($i == "timed" || $i == "exec") f += $(i-1)
            }
        }
        END { print p + 0, f + 0 }'
}
# Reasons of tests that skipped themselves, one a line. In nextest's report the text sits inside XML.
skip_reasons() {
    sed -n '/<failure\|<rerunFailure/d; s/^.*SKIPPED: //; T; s/<.*//; s/&lt;/</g; s/&gt;/>/g; s/&quot;/"/g; s/&amp;/\&/g; p' "$@" 2>/dev/null
}

# A part returns 0, 1, or `skip WHY`, and may leave reports with skipped tests in $tmp/reports.
skip() {
    printf '%s\n' "$*" >"$tmp/why"
    return 77
}
# The last command must have run a test at all: a filter that matches nothing is no success.
must_have_run() { # LOG WHAT
    local passed
    passed=$(count_tests "$1" | cut -d' ' -f1)
    if ((passed == 0)); then
        echo "test: $2 ran no test"
        return 1
    fi
}
locked=()
[[ $ci == yes ]] && locked=(--locked)

# --- Parts ---
part_fmt() {
    cargo fmt --version >/dev/null 2>&1 || { skip "rustfmt is not installed"; return; }
    cargo fmt --all --check || return 1
    local file
    for file in bench/fuzz/Cargo.toml bench/peers/Cargo.toml; do
        [[ ! -f $file ]] || cargo fmt --manifest-path "$file" --check || return 1
    done
}

part_scripts() {
    local bad=0 script
    has shellcheck || { skip "shellcheck is not installed"; return; }
    while IFS= read -r script; do
        shellcheck -S warning "$script" || bad=1
    done < <(find deploy bench .ci -type f \( -name '*.sh' -o -path .ci/run \) -not -path '*/target/*' -not -path '*/corpus/*' | sort)
    printf '%s\n' 'test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s' \
        'test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s' \
        'the words 9 passed; inside a line do not count' >"$tmp/cargo.txt"
    [[ $(count_tests "$tmp/cargo.txt") == "7 2" ]] || { echo "cargo test's closing lines are counted wrongly" && bad=1; }
    printf '%s\n' '     Summary [   0.012s] 12 tests run: 9 passed (1 slow), 2 failed, 1 timed out, 4 skipped' >"$tmp/nextest.txt"
    [[ $(count_tests "$tmp/nextest.txt") == "9 3" ]] || { echo "nextest's closing line is counted wrongly" && bad=1; }
    printf '%s\n' '    <system-err>SKIPPED: no free &lt;2 MiB&gt; pages</system-err>' 'SKIPPED: not root' 'skipped: no' >"$tmp/skips.txt"
    [[ $(skip_reasons "$tmp/skips.txt") == $'no free <2 MiB> pages\nnot root' ]] || { echo "skipped tests are counted wrongly" && bad=1; }
    deploy/setup.sh --no-such-option >/dev/null 2>&1
    [[ $? -eq 2 ]] || { echo "setup.sh took a wrong option" && bad=1; }
    RINGWRIGHT_HUGEPAGES=many deploy/setup.sh --check >/dev/null 2>&1
    [[ $? -eq 2 ]] || { echo "setup.sh took RINGWRIGHT_HUGEPAGES=many" && bad=1; }
    return "$bad"
}

part_lint() {
    cargo clippy --version >/dev/null 2>&1 || { skip "clippy is not installed"; return; }
    cargo clippy "${locked[@]}" --workspace --all-targets -- -D warnings
}

part_unit() {
    local bad=0 ignored=() report=target/nextest/default/junit.xml # wherever CARGO_TARGET_DIR points
    if cargo nextest --version >/dev/null 2>&1; then
        [[ $full == yes ]] && ignored=(--run-ignored all)
        rm -f "$report"
        cargo nextest run "${locked[@]}" --workspace -E "not ($net_tests)" --no-fail-fast --status-level slow "${ignored[@]}" || bad=1
        cp "$report" "$tmp/reports/" || bad=1
    else
        [[ $full == yes ]] && ignored=(--include-ignored)
        cargo test "${locked[@]}" --workspace --no-fail-fast --all-targets -- --show-output --skip scenarios:: "${ignored[@]}" || bad=1
    fi
    cargo test "${locked[@]}" --quiet --workspace --no-fail-fast --doc -- --show-output || bad=1
    return "$bad"
}

part_cross() {
    [[ -e $(rustc --print sysroot)/lib/rustlib/aarch64-unknown-linux-gnu ]] ||
        { skip "the Rust target aarch64-unknown-linux-gnu is not installed"; return; }
    cargo check "${locked[@]}" --workspace --all-targets --target aarch64-unknown-linux-gnu
}

# Loom wants speed but not the release profile's slow link. Its tests of weakened orderings panic on purpose: no backtraces.
part_loom() {
    [[ $full == yes ]] || export LOOM_MAX_PREEMPTIONS=3
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true \
        RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" CARGO_TARGET_DIR=$target/loom RUST_BACKTRACE=0 \
        cargo test -p ringwright-ring --release --test loom -- --show-output || return 1
    must_have_run "$tmp/log" loom
}

# Without isolation: memory's set-up reads the machine's nodes and pages from files. Every crate named must have run a test.
part_miri() {
    local crate bad=0 report=target/nextest/default-miri/junit.xml
    cargo +nightly miri --version >/dev/null 2>&1 || { skip "nightly Rust with Miri is not installed"; return; }
    export MIRIFLAGS="${MIRIFLAGS:--Zmiri-disable-isolation}"
    [[ $full == yes ]] && MIRIFLAGS+=" -Zmiri-many-seeds=0..8"
    if cargo nextest --version >/dev/null 2>&1; then # one process a test, on all cores
        rm -f "$report"
        [[ $full == yes ]] && miri_short='all()'
        cargo +nightly miri nextest run "${miri_crates[@]/#/-p=}" -E "$miri_short" --no-fail-fast --status-level pass || bad=1
        cp "$report" "$tmp/reports/" || bad=1
        for crate in "${miri_crates[@]}"; do
            grep -q "<testsuite name=\"${crate}[:\"]" "$report" && continue
            echo "test: $crate ran no test" && bad=1
        done
    else
        for crate in "${miri_crates[@]}"; do
            cargo +nightly miri test -p "$crate" --lib --tests -- --show-output 2>&1 | tee "$tmp/$crate.log"
            [[ ${PIPESTATUS[0]} -eq 0 ]] && must_have_run "$tmp/$crate.log" "$crate" || bad=1
        done
    fi
    return "$bad"
}

# One build for every part that wants release binaries, so that features unify one way only.
build_release() {
    cargo build "${locked[@]}" --release -p ringwright -p ringwright-bench --bins
}

# Wrong usage: exit code 2, nothing on stdout, something on stderr.
refuses() {
    timeout --foreground 20 "$target/release/ringwright" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    local rc=$?
    if [[ $rc -ne 2 || -s $tmp/out || ! -s $tmp/err ]]; then
        echo "test result: FAILED. 0 passed; 1 failed; ringwright $*: exit $rc (wanted 2), $(wc -c <"$tmp/out") bytes on stdout (wanted 0), stderr:"
        head -n 5 "$tmp/err"
        return 1
    fi
    echo "test result: ok. 1 passed; 0 failed; refused: ringwright $*: $(tail -n 1 "$tmp/err")"
}
accounted_for() {
    python3 - "$1" <<'PY'
import json, sys
status = json.load(open(sys.argv[1]))
sums = status["conservation"]
got = sum(port["rx"]["packets"] for port in status["ports"])
faults = []
if got <= 0:
    faults.append("no packet was received")
if sums["unexplained"] != 0:
    faults.append(f"{sums['unexplained']} packets unexplained")
if sums["received"] + sums["created"] != sums["sent"] + sums["consumed"] + sums["held"] + sums["dropped"] + sums["unexplained"]:
    faults.append(f"the sums do not balance: {sums}")
if got != sums["received"]:
    faults.append(f"ports say {got} received, conservation says {sums['received']}")
print(f"{got} packets in {status['elapsed_s']} s; {sums}")
sys.exit("; ".join(faults) or 0)
PY
}
demo_runs() { # NAME SIGNAL-OR-NONE ARGS...
    local name=$1 signal=$2 rc
    shift 2
    if [[ $signal == none ]]; then
        timeout --foreground 120 "$target/release/ringwright" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
        rc=$?
    else
        # A shell starts background children with INT ignored; timeout hands signals on.
        env --default-signal=INT timeout --foreground 30 "$target/release/ringwright" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null &
        local pid=$!
        sleep 2
        kill "-$signal" "$pid"
        wait "$pid"
        rc=$?
    fi
    if [[ $rc -eq 0 ]] && accounted_for "$tmp/out" && ! grep -qi panicked "$tmp/err"; then
        echo "test result: ok. 1 passed; 0 failed; $name"
    else
        echo "test result: FAILED. 0 passed; 1 failed; $name: exit $rc; stderr ends:"
        tail -n 10 "$tmp/err"
        return 1
    fi
}
part_demo() {
    local bad=0
    has python3 || { skip "python3 is not installed"; return; }
    build_release || return 1
    make -s run ARGS="--for 1s" || { echo "make run does not"; bad=1; }
    demo_runs "demo for 3 s" none demo --for 3s --json || bad=1
    demo_runs "demo with imix" none demo --for 1s --frame imix --json || bad=1
    demo_runs "SIGTERM ends it cleanly" TERM demo --for 60s --json || bad=1
    demo_runs "SIGINT ends it cleanly" INT demo --for 60s --json || bad=1
    [[ $full == yes ]] && { demo_runs "demo for a minute" none demo --for 60s --json || bad=1; }
    refuses no-such-command || bad=1
    refuses demo --no-such-flag || bad=1
    refuses demo --for banana || bad=1
    refuses demo --for 1s --frame 0 || bad=1
    refuses demo --for 1s --frame 59 || bad=1
    refuses demo --for 1s --frame 9999999 || bad=1
    refuses demo --for 1s --link gen99x3 || bad=1
    return "$bad"
}

# Each test skips by itself what the machine lacks. It is the release binary that runs; with --full the other one too, whose arithmetic is
# checked, and a bridge in its place, which shows that the scenarios are right: of what it can do.
part_net() {
    local bad=0 report=target/nextest/default/junit.xml
    build_release || return 1
    RINGWRIGHT_NET_BINARY=$(realpath "$target/release/ringwright")
    export RINGWRIGHT_NET_BINARY
    if ! cargo nextest --version >/dev/null 2>&1; then
        cargo test "${locked[@]}" -p ringwright --test net -- --show-output --test-threads 1
        return
    fi
    local run=(cargo nextest run "${locked[@]}" -E "$net_tests" -p ringwright --no-fail-fast)
    if [[ $full == yes ]]; then
        RINGWRIGHT_NET_REFERENCE=1 "${run[@]}" --status-level fail || bad=1
        env -u RINGWRIGHT_NET_BINARY "${run[@]}" --status-level slow || bad=1
        export RINGWRIGHT_NET_BYTES=$((1 << 30))
    fi
    rm -f "$report"
    "${run[@]}" --status-level slow || bad=1
    cp "$report" "$tmp/reports/" || bad=1
    return "$bad"
}

part_fuzz() {
    local seconds=5
    [[ $full == yes ]] && seconds=60
    bench/fuzz/run.sh --seconds "$seconds"
}

part_instructions() {
    has valgrind || { skip "valgrind is not installed"; return; }
    build_release || return 1
    "$target/release/ringwright-bench" instructions --check
}

# --- Running ---
results=()
passed=0
failed=0
skipped=0
run_part() {
    local part=$1 start=$SECONDS rc result p f s=0 reasons note=
    printf '\n=== %s ===\n' "$part"
    rm -rf "$tmp/reports" "$tmp/why" "$tmp/rc"
    mkdir -p "$tmp/reports"
    # A process group of its own, so that all of it can be ended.
    set -m
    {
        "part_$part" </dev/null
        echo $? >"$tmp/rc"
    } 2>&1 | tee "$tmp/log" &
    local last=$!
    group=$(jobs -p %+)
    { sleep "$part_limit" && echo "test: $part took over $part_limit s" >>"$tmp/why" && kill -TERM -- "-$group"; } &
    watchdog=$!
    set +m
    wait "$last" 2>/dev/null
    kill -TERM -- "-$watchdog" 2>/dev/null
    wait "$watchdog" 2>/dev/null
    watchdog=
    kill -TERM -- "-$group" 2>/dev/null # stragglers
    group=
    rc=$(cat "$tmp/rc" 2>/dev/null || echo 1)
    read -r p f < <(count_tests "$tmp/log")
    reasons=$(skip_reasons "$tmp/log" "$tmp"/reports/* | sort | uniq -c | sed 's/^ *\([0-9]*\) /\1 x /')
    [[ -n $reasons ]] && s=$(awk '{ n += $1 } END { print n }' <<<"$reasons")
    p=$((p > s ? p - s : 0))
    case $rc in
    0) ((p + f + s > 0)) || p=1 ;;
    77) s=1 && reasons=$(<"$tmp/why") ;;
    *)
        ((f > 0)) || f=1
        [[ -s $tmp/why ]] && note=$(<"$tmp/why")
        ;;
    esac
    result=passed
    if [[ $s -gt 0 ]]; then
        note="$s skipped: $(paste -sd, <<<"$reasons")"
        if [[ $ci == yes ]]; then
            f=$((f + s))
            s=0
            note="$note (CI skips nothing)"
        elif ((rc == 77)); then
            result="SKIPPED"
        fi
    fi
    ((f > 0)) && result=FAILED
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    printf -- '--- %s: %s in %d s\n' "$part" "$result" $((SECONDS - start))
    results+=("$(printf '%-13s %-8s %6d %6d %7d %7d  %s' "$part" "$result" "$p" "$f" "$s" $((SECONDS - start)) "$note")")
}

for part in "${parts[@]}"; do
    run_part "$part"
done

printf '\n%-13s %-8s %6s %6s %7s %7s\n' part result passed failed skipped seconds
printf '%s\n' "${results[@]}" | sed 's/ *$//'
printf '%-13s %-8s %6d %6d %7d %7d\n\n' all "" "$passed" "$failed" "$skipped" "$SECONDS"
printf '%d passed, %d failed' "$passed" "$failed"
((skipped > 0)) && printf ', %d skipped' "$skipped"
echo
((failed == 0))
