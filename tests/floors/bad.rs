//! The rules themselves, on made-up bad workspaces.

use crate::none;
use crate::rules::*;

fn made_up(folder: &str, needs: &[(&str, Kind)]) -> Member {
    let last = folder.rsplit('/').next().unwrap_or_default();
    Member {
        folder: folder.to_owned(),
        name: if last.is_empty() { "ringwright".to_owned() } else { format!("ringwright-{last}") },
        needs: needs.iter().map(|(to, kind)| ((*to).to_owned(), *kind)).collect(),
        roots: vec![format!("{folder}/src/lib.rs")],
    }
}

fn made_up_source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

/// A small good workspace that uses every exception.
fn good() -> Vec<Member> {
    vec![
        made_up(
            "",
            &[("framework/stages", Kind::Normal), ("pmd/nic", Kind::Normal), ("pmd/nic-model", Kind::Normal)],
        ),
        made_up("bench", &[("", Kind::Normal)]),
        made_up("framework/stages", &[("framework/graph", Kind::Normal), ("pmd/null", Kind::Dev)]),
        made_up("framework/graph", &[("framework/port", Kind::Normal)]),
        made_up("framework/hw", &[("framework/topology", Kind::Normal)]),
        made_up("pmd/nic", &[("pmd/nic-defs", Kind::Normal), ("pmd/nic-model", Kind::Dev)]),
        made_up("pmd/nic-model", &[("pmd/nic-defs", Kind::Normal)]),
        made_up("pmd/nic-defs", &[("framework/ring", Kind::Normal)]),
    ]
}

/// The good workspace with one crate's needs replaced.
fn bent(folder: &str, needs: &[(&str, Kind)]) -> Vec<Member> {
    let mut members = good();
    members.retain(|m| m.folder != folder);
    members.push(made_up(folder, needs));
    members
}

#[track_caller]
fn one_fault(faults: &[String], about: &str) {
    assert!(
        faults.len() == 1 && faults[0].contains(about),
        "wanted one fault about {about:?}, got {faults:?}"
    );
}

#[test]
fn a_good_workspace_has_no_faults() {
    none(name_faults(&good()));
    none(arrow_faults(&good()));
    none(seam_faults(&good()));
}

#[test]
fn bad_names_and_missing_floors_are_found() {
    one_fault(&name_faults(&[made_up("framework/extras", &[])]), "has no floor");
    one_fault(&name_faults(&[made_up("pmd/nic/deep", &[])]), "has no floor");
    one_fault(&name_faults(&[made_up("pmd/util", &[])]), "catch-all");
    let mut misnamed = made_up("pmd/nic", &[]);
    misnamed.name = "nic".to_owned();
    one_fault(&name_faults(&[misnamed]), "not ringwright-nic");
}

#[test]
fn arrows_up_and_sideways_are_found() {
    one_fault(
        &arrow_faults(&bent("framework/meter", &[("framework/mem", Kind::Normal)])),
        "arrows go down only",
    );
    one_fault(
        &arrow_faults(&bent("framework/mem", &[("framework/ring", Kind::Normal)])),
        "arrows go down only",
    );
    one_fault(&arrow_faults(&bent("framework/rt", &[("framework/lab", Kind::Build)])), "arrows go down only");
    one_fault(&arrow_faults(&bent("framework/lab", &[("", Kind::Normal)])), "the root package (floor 6)");
    one_fault(&arrow_faults(&bent("bench", &[("framework/rt", Kind::Normal)])), "used by nobody");
    none(arrow_faults(&bent("framework/meter", &[("framework/mem", Kind::Dev)])));
}

#[test]
fn broken_seams_are_found() {
    one_fault(
        &seam_faults(&bent("framework/graph", &[("pmd/nic-defs", Kind::Normal)])),
        "never see a driver",
    );
    one_fault(&seam_faults(&bent("pmd/nic", &[("framework/graph", Kind::Normal)])), "never sees graph");
    one_fault(
        &seam_faults(&bent("pmd/nic-model", &[("pmd/nic", Kind::Dev)])),
        "a model never depends on a driver",
    );
    one_fault(&seam_faults(&bent("pmd/nic", &[("pmd/nic-model", Kind::Normal)])), "in tests only");
    one_fault(
        &seam_faults(&bent("pmd/nic-model", &[("framework/pcie", Kind::Dev)])),
        "never depends on pcie",
    );
}

#[test]
fn unsafe_code_in_the_wrong_place_is_found() {
    let faults = |folder: &str, text: &str| {
        unsafety_faults(&made_up(folder, &[]), &[made_up_source(&format!("{folder}/src/lib.rs"), text)])
    };
    let opted_in = "// UNSAFETY: a device writes here.\n#![allow(unsafe_code)]\n";
    none(faults("framework/ring", opted_in));
    none(faults("pmd/nic-model", opted_in));
    none(faults("pmd/nic", "#![forbid(unsafe_code)]\n"));
    one_fault(&faults("pmd/nic", opted_in), "may not have any");
    one_fault(
        &faults(
            "pmd/nic",
            "// UNSAFETY: quickly, here.\n#![forbid(x)]\n#[allow(dead_code, unsafe_code)]\nfn f() {}\n",
        ),
        "may not have any",
    );
    one_fault(&faults("framework/ring", "#![allow(unsafe_code)]\n"), "without a line");
    one_fault(&faults("framework/ring", "// UNSAFETY:\n#![allow(unsafe_code)]\n"), "without a line");
    one_fault(&faults("pmd/nic", "//! Says nothing. #![forbid(unsafe_code)]\n"), "neither forbids");
}

#[test]
fn large_files_and_a_large_core_are_found() {
    let file = |path: &str, lines: usize, end: &str| {
        made_up_source(path, &format!("{}{end}", "let x = 1;\n".repeat(lines)))
    };
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "check();\n".repeat(FILE_LIMIT));
    none(size_faults(&[file("framework/rt/src/lib.rs", FILE_LIMIT, &tests)]));
    none(size_faults(&[file("framework/rt/src/x/tests.rs", FILE_LIMIT + 1, "")]));
    one_fault(&size_faults(&[file("framework/rt/src/lib.rs", FILE_LIMIT + 1, "")]), "split it");
    none(size_faults(&[file("framework/ring/src/loom.rs", FILE_LIMIT + 1, "#![cfg(loom)]\n")]));
    one_fault(&size_faults(&[file("framework/ring/src/x.rs", FILE_LIMIT + 1, "#[cfg(loom)]\n")]), "split it");
    let core = |last: usize| {
        let mut files: Vec<Source> =
            (0..5).map(|i| file(&format!("framework/mem/src/f{i}.rs"), 590, "/// Words.\n\n")).collect();
        files.push(file("framework/graph/src/lib.rs", last, "#[cfg(test)]\nmod tests;\n"));
        files
    };
    none(size_faults(&core(CORE_LIMIT - 5 * 590 - 3)));
    one_fault(&size_faults(&core(CORE_LIMIT - 5 * 590 - 2)), "stays under");
}
