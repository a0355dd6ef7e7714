#!/usr/bin/env bash
# Builds the fuzz targets and runs each for a while. See README.md beside this.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
    echo "usage: run.sh [TARGET...] [--seconds N] [--seed N] [--keep] [--asan] [--input FILE]" >&2
    echo "targets: $(all_targets | tr '\n' ' ')" >&2
    exit 2
}
all_targets() { for file in "$here"/src/bin/*.rs; do basename "$file" .rs; done; }
is_number() { [[ ${1:-} =~ ^[0-9]{1,9}$ ]]; }

seconds=5 seed=1 keep=no asan=no input='' targets=()
while (($#)); do
    case $1 in
        --seconds) is_number "${2:-}" || usage; seconds=$2; shift ;;
        --seed) is_number "${2:-}" || usage; seed=$2; shift ;;
        --input) [[ -f ${2:-} ]] || usage; input=$(realpath "$2"); shift ;;
        --keep) keep=yes ;;
        --asan) asan=yes ;;
        -*) usage ;;
        *) [[ -f $here/src/bin/$1.rs ]] || usage; targets+=("$1") ;;
    esac
    shift
done
((${#targets[@]})) || mapfile -t targets < <(all_targets)
[[ -z $input ]] || ((${#targets[@]} == 1)) || usage
if ! command -v c++ >/dev/null; then
    echo "no C++ compiler, which libFuzzer needs: apt-get install g++" >&2
    exit 1
fi

# SanitizerCoverage as libFuzzer reads it: a counter and an address per edge, and the operands of comparisons.
flags=(-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing)
toolchain=() dir=${CARGO_TARGET_DIR:+$CARGO_TARGET_DIR/fuzz}
dir=${dir:-$here/target}
if [[ $asan = yes ]]; then
    toolchain=(+nightly) flags+=(-Zsanitizer=address) dir+=-asan
fi
# An explicit target keeps the flags away from build scripts and procedural macros.
triple=$(rustc -vV | sed -n 's/^host: //p')
(cd "$here" && RUSTFLAGS="${flags[*]}" cargo "${toolchain[@]}" build --release --quiet --locked \
    --target "$triple" --target-dir "$dir" "${targets[@]/#/--bin=}")

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Inputs that between them reach all edges, as few as libFuzzer finds, replace the committed ones.
keep_finds() { # TARGET PROGRAM
    mkdir "$scratch/merged"
    "$2" -set_cover_merge=1 -use_counters=0 "$scratch/merged" "$scratch/$1" "$here/corpus/$1" >/dev/null 2>&1
    mkdir -p "$here/corpus/$1"
    find "$here/corpus/$1" -type f -delete
    mv "$scratch/merged"/* "$here/corpus/$1/"
    rmdir "$scratch/merged"
    echo "$1: kept $(find "$here/corpus/$1" -type f | wc -l) inputs" >&2
}

status=0
for target in "${targets[@]}"; do
    program=$dir/$triple/release/$target
    if [[ -n $input ]]; then
        "$program" "$input" || status=1
        continue
    fi
    own=$(sed -n 's|^//! Flags: ||p' "$here/src/bin/$target.rs")
    mkdir -p "$scratch/$target" "$here/artifacts/$target" "$here/corpus/$target"
    cp "$here/corpus/$target"/* "$scratch/$target/" 2>/dev/null || true
    log=$scratch/$target.log began=$SECONDS
    # shellcheck disable=SC2086 # a target's own flags are several words
    if "$program" -max_total_time="$seconds" -seed="$seed" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="$here/artifacts/$target/" $own "$scratch/$target" >"$log" 2>&1; then
        [[ $keep = no ]] || keep_finds "$target" "$program"
    else
        status=1
        tail -n 40 "$log" >&2
        echo "$target: CRASH $(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)"
    fi
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    edges=$(grep -o ' cov: [0-9]*' "$log" | tail -n 1 | tr -dc 0-9 || true)
    inputs=$(grep -o ' corp: [0-9]*' "$log" | tail -n 1 | tr -dc 0-9 || true)
    echo "$target: executions ${executions:-0}, edges ${edges:-0}, corpus ${inputs:-0}, seconds $((SECONDS - began))"
done
exit $status
