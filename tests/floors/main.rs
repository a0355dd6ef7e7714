//! Holds the shape of the workspace: who may depend on whom, where unsafe code may be, and how large the core may grow.
//!
//! Arrows go to lower floors only. The rules are functions from what was found to a list of faults, so that each is tested
//! on a made-up bad workspace as well as on the real one.
//!
//! What this does not see: dev-dependencies are free (tests may look anywhere) except where a rule says otherwise, and
//! unsafe code is found by its `allow`, which the workspace lint makes necessary.
#![forbid(unsafe_code)]

mod bad;
mod rules;

use rules::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn relative(path: &str) -> String {
    let path = Path::new(path);
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().into_owned()
}

fn kind(dependency: &serde_json::Value) -> Kind {
    match dependency["kind"].as_str() {
        Some("dev") => Kind::Dev,
        Some("build") => Kind::Build,
        _ => Kind::Normal,
    }
}

fn member(package: &serde_json::Value) -> Member {
    let words = |v: &serde_json::Value| v.as_str().unwrap_or_default().to_owned();
    let list = |key: &str| package[key].as_array().cloned().unwrap_or_default();
    let is_root = |t: &serde_json::Value| {
        let kinds = t["kind"].as_array().cloned().unwrap_or_default();
        kinds.iter().any(|k| {
            ["lib", "bin", "cdylib", "staticlib", "proc-macro", "custom-build"]
                .contains(&k.as_str().unwrap_or(""))
        })
    };
    Member {
        folder: relative(&words(&package["manifest_path"]))
            .trim_end_matches("Cargo.toml")
            .trim_end_matches('/')
            .to_owned(),
        name: words(&package["name"]),
        needs: list("dependencies")
            .iter()
            .filter_map(|d| d["path"].as_str().map(|path| (relative(path), kind(d))))
            .collect(),
        roots: list("targets")
            .iter()
            .filter(|t| is_root(t))
            .map(|t| relative(&words(&t["src_path"])))
            .collect(),
    }
}

fn workspace() -> Vec<Member> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let out = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(out.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&out.stdout).expect("cargo metadata is JSON");
    let members: Vec<Member> =
        metadata["packages"].as_array().expect("packages").iter().map(member).collect();
    assert!(members.iter().any(|m| m.folder.is_empty()), "the root package was found");
    assert!(
        members.iter().any(|m| m.folder == "framework/hw" && !m.roots.is_empty()),
        "hw was found: {members:?}"
    );
    members
}

/// Rust files of a member, those of members inside it and of `target` folders left out.
fn sources(member: &Member) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = Vec::new();
    let base = root().join(&member.folder);
    for part in ["src", "tests", "benches", "examples"] {
        // The root's `examples` holds crates of their own.
        if !(member.folder.is_empty() && part == "examples") {
            folders.push(base.join(part));
        }
    }
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.map(|e| e.expect("a folder can be read").path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&entry).expect("a source is UTF-8");
                found.push(Source { path: relative(&entry.to_string_lossy()), text });
            }
        }
    }
    found.extend(
        std::fs::read_to_string(base.join("build.rs"))
            .ok()
            .map(|text| Source { path: relative(&base.join("build.rs").to_string_lossy()), text }),
    );
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn none(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n  {}", faults.join("\n  "));
}

#[test]
fn every_crate_has_a_floor_and_a_name() {
    none(name_faults(&workspace()));
}

#[test]
fn arrows_go_down_only() {
    none(arrow_faults(&workspace()));
}

#[test]
fn drivers_models_and_the_graph_keep_apart() {
    none(seam_faults(&workspace()));
}

#[test]
fn unsafe_code_is_where_the_design_allows_it() {
    none(workspace().iter().flat_map(|m| unsafety_faults(m, &sources(m))).collect());
}

#[test]
fn the_core_stays_small() {
    let all: Vec<Source> = workspace().iter().flat_map(sources).collect();
    let mut by_crate: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for s in all.iter().filter(|s| is_library_file(&s.path)) {
        if let Some(c) = CORE.iter().find(|c| s.path.starts_with(&format!("{c}/"))) {
            let sums = by_crate.entry(c).or_default();
            *sums = (sums.0 + code_lines(s), sums.1 + file_lines(s));
        }
        if file_lines(s) > FILE_GOAL {
            println!("{}: {} lines without its tests, {FILE_GOAL} is the goal", s.path, file_lines(s));
        }
    }
    for (name, (code, lines)) in &by_crate {
        println!("{name}: {code} lines of code, {lines} with comments");
    }
    let (code, lines) = by_crate.values().fold((0, 0), |sum, x| (sum.0 + x.0, sum.1 + x.1));
    println!("the core: {code} lines of code of {CORE_LIMIT}, {lines} with comments");
    assert_eq!(by_crate.len(), CORE.len(), "every crate of the core was counted");
    none(size_faults(&all));
}
