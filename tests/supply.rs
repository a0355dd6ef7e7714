//! Holds what the project is built from: where dependencies come from, under which licences, and that every crate of the
//! workspace carries the same terms and lints.
//!
//! What this does not see: dependencies of other platforms than the one it runs on, and security advisories.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Licences whose terms a binary under MIT or Apache-2.0 can carry.
const LICENCES: [&str; 8] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",
];

/// Crates that no library here may name, and why. The command, the benchmarks and tests may.
const BANNED: [(&str, &str); 5] = [
    ("anyhow", "errors are API: one enum per crate"),
    ("eyre", "errors are API: one enum per crate"),
    ("lazy_static", "std has LazyLock, and libraries have no global state"),
    ("once_cell", "std has OnceLock, and libraries have no global state"),
    ("log", "tracing is what is used here"),
];

/// Whether an SPDX expression (`OR`, `AND`, parentheses; `/` as an old `OR`) can be met with [`LICENCES`].
fn licence_ok(expression: &str) -> bool {
    let spaced =
        expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ").replace(" WITH ", "~WITH~");
    let words: Vec<String> = spaced.split_whitespace().map(|w| w.replace('~', " ")).collect();
    let mut at = 0;
    any_of(&words, &mut at) == Some(true) && at == words.len()
}

/// `all OR all ...`; `None` where the expression is broken.
fn any_of(words: &[String], at: &mut usize) -> Option<bool> {
    let mut met = all_of(words, at)?;
    while words.get(*at).is_some_and(|w| w == "OR") {
        *at += 1;
        met |= all_of(words, at)?;
    }
    Some(met)
}

/// `one AND one ...`, where one is a licence or a bracketed expression.
fn all_of(words: &[String], at: &mut usize) -> Option<bool> {
    let mut met = true;
    loop {
        let word = words.get(*at)?;
        *at += 1;
        if word == "(" {
            met &= any_of(words, at)?;
            if words.get(*at)? != ")" {
                return None;
            }
            *at += 1;
        } else if ["OR", "AND", ")"].contains(&word.as_str()) {
            return None;
        } else {
            met &= LICENCES.contains(&word.as_str());
        }
        if words.get(*at).is_none_or(|w| w != "AND") {
            return Some(met);
        }
        *at += 1;
    }
}

fn text<'a>(package: &'a Value, key: &str) -> &'a str {
    package[key].as_str().unwrap_or_default()
}

/// A dependency comes from the registry, under a licence that can be met.
fn outside_faults(package: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let name = text(package, "name");
    if !text(package, "source").starts_with("registry+") {
        faults.push(format!("{name} comes from {}, not from the registry", text(package, "source")));
    }
    if !licence_ok(text(package, "license")) {
        faults.push(format!("{name} is under {:?}: not one of {LICENCES:?}", text(package, "license")));
    }
    faults
}

/// A crate of ours says what it is, under our terms, and takes the workspace's lints. `manifest` is its Cargo.toml.
fn own_faults(package: &Value, manifest: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let name = text(package, "name");
    let mut rule = |holds: bool, what: &str| {
        if !holds {
            faults.push(format!("{name}: {what}"));
        }
    };
    rule(text(package, "license") == "MIT OR Apache-2.0", "license.workspace = true is missing");
    rule(text(package, "edition") == "2024", "edition.workspace = true is missing");
    rule(text(package, "rust_version") == "1.95", "rust-version.workspace = true is missing");
    rule(package["publish"].as_array().is_some_and(Vec::is_empty), "publish.workspace = true is missing");
    rule(text(package, "description").len() >= 15, "the description says nothing");
    rule(
        manifest.contains("[lints]\nworkspace = true"),
        "[lints] workspace = true is missing: unsafe code would pass unseen",
    );
    let library = ["/framework/", "/pmd/"].iter().any(|d| text(package, "manifest_path").contains(d));
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let banned = BANNED.iter().find(|(b, _)| *b == text(dependency, "name"));
        if let Some((banned, why)) = banned.filter(|_| library && dependency["kind"].as_str() != Some("dev"))
        {
            rule(false, &format!("depends on {banned}: {why}"));
        }
    }
    faults
}

/// Everything the default features build on this platform. The build has fetched what it used, so this mostly needs no
/// network; a partial build may have left out another crate's test dependencies, and then it does.
fn packages() -> Vec<Value> {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let metadata = |offline: &[&str]| {
        Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["metadata", "--format-version", "1", "--filter-platform", &platform])
            .args(offline)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs")
    };
    let mut out = metadata(&["--offline"]);
    if !out.status.success() {
        out = metadata(&[]);
    }
    assert!(out.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    let metadata: Value = serde_json::from_slice(&out.stdout).expect("cargo metadata is JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

#[test]
fn dependencies_come_from_the_registry_under_known_licences() {
    let outside: Vec<Value> = packages().into_iter().filter(|p| !p["source"].is_null()).collect();
    assert!(outside.iter().any(|p| text(p, "name") == "thiserror"), "dependencies were found");
    let faults: Vec<String> = outside.iter().flat_map(outside_faults).collect();
    assert!(faults.is_empty(), "\n  {}", faults.join("\n  "));
}

#[test]
fn every_crate_carries_the_workspaces_terms_and_lints() {
    let own: Vec<Value> = packages().into_iter().filter(|p| p["source"].is_null()).collect();
    assert!(own.iter().any(|p| text(p, "name") == "ringwright-hw"), "our crates were found");
    let manifest = |p: &Value| {
        std::fs::read_to_string(Path::new(text(p, "manifest_path"))).expect("a manifest can be read")
    };
    let faults: Vec<String> = own.iter().flat_map(|p| own_faults(p, &manifest(p))).collect();
    assert!(faults.is_empty(), "\n  {}", faults.join("\n  "));
}

#[test]
fn licence_expressions_are_understood() {
    for good in [
        "MIT",
        "MIT OR GPL-3.0",
        "GPL-3.0/MIT",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "GPL-2.0 OR (ISC AND (MIT OR GPL-3.0))",
        "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
    ] {
        assert!(licence_ok(good), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR Apache-2.0",
        "MIT OR",
        "MIT Apache-2.0",
        "MIT) OR (MIT",
        "mit",
    ] {
        assert!(!licence_ok(bad), "{bad}");
    }
}

#[test]
fn bad_packages_are_found() {
    let outside = serde_json::json!({"name": "x", "source": "registry+index", "license": "MIT"});
    assert!(outside_faults(&outside).is_empty());
    let git = serde_json::json!({"name": "x", "source": "git+ssh://there", "license": "GPL-3.0-only"});
    assert_eq!(outside_faults(&git).len(), 2);

    let lints = "[package]\n[lints]\nworkspace = true\n";
    let mut own = serde_json::json!({
        "name": "ringwright-x", "manifest_path": "/r/pmd/x/Cargo.toml", "license": "MIT OR Apache-2.0", "edition": "2024",
        "rust_version": "1.95", "publish": [], "description": "A crate that does something",
        "dependencies": [{"name": "anyhow", "kind": "dev"}, {"name": "thiserror", "kind": null}],
    });
    assert!(own_faults(&own, lints).is_empty());
    assert_eq!(own_faults(&own, "[package]\n").len(), 1);
    own["dependencies"] = serde_json::json!([{"name": "anyhow", "kind": null}]);
    own["publish"] = Value::Null;
    own["license"] = Value::Null;
    assert_eq!(own_faults(&own, lints).len(), 3);
    own["manifest_path"] = "/r/bench/Cargo.toml".into();
    assert_eq!(own_faults(&own, lints).len(), 2);
}
