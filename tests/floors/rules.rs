//! The rules: from what was found in a workspace to a list of faults.

/// The floor of each crate that stands alone; `pmd/*` and `examples/*` have theirs by folder, see [`floor`].
pub(crate) const FLOORS: [(&str, u8); 16] = [
    ("framework/config", 0),
    ("framework/hw", 0),
    ("framework/meter", 0),
    ("framework/pcie", 0),
    ("framework/topology", 0),
    ("framework/mem", 1),
    ("framework/ring", 1),
    ("framework/wire", 1),
    ("framework/port", 2),
    ("framework/graph", 3),
    ("framework/handoff", 3),
    ("framework/stages", 3),
    ("framework/rt", 4),
    ("framework/lab", 4),
    ("bench", 5),
    ("", 6),
];

/// Arrows that do not go down, each with its reason. One that nothing uses any more is a fault too.
pub(crate) const EXCEPTIONS: [(&str, &str, &str); 3] = [
    (
        "framework/hw",
        "framework/topology",
        "hw lays memory on nodes and pages, topology says which there are; it knows no memory and no device",
    ),
    (
        "framework/stages",
        "framework/graph",
        "a stage implements the graph's Stage and Exit; the graph knows no stage",
    ),
    ("bench", "", "the benchmarks run the command and the facade as a user does; nothing depends on bench"),
];

/// Crates that may use unsafe code: the edge of Rust, and the drivers that talk to the kernel or to another project.
/// Models may as well: they are the other side of shared memory.
pub(crate) const MAY_BE_UNSAFE: [&str; 10] = [
    "framework/hw",
    "framework/mem",
    "framework/ring",
    "pmd/xdp",
    "pmd/packet",
    "pmd/tap",
    "pmd/vhost",
    "pmd/memif",
    "pmd/netmap",
    "pmd/dpdk",
];

/// Together these stay under [`CORE_LIMIT`] lines of code.
pub(crate) const CORE: [&str; 6] = [
    "framework/hw",
    "framework/mem",
    "framework/ring",
    "framework/meter",
    "framework/port",
    "framework/graph",
];
pub(crate) const CORE_LIMIT: usize = 3000;
/// A library file over this many lines is a fault; over [`FILE_GOAL`] it is only named.
pub(crate) const FILE_LIMIT: usize = 600;
pub(crate) const FILE_GOAL: usize = 400;

pub(crate) const CATCH_ALLS: [&str; 4] = ["common", "util", "utils", "helpers"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
}

/// A workspace member, by its folder relative to the root ("" is the root package).
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) folder: String,
    pub(crate) name: String,
    /// Folders of the members it depends on.
    pub(crate) needs: Vec<(String, Kind)>,
    /// Roots of its libraries and binaries, relative to the workspace.
    pub(crate) roots: Vec<String>,
}

/// A source file, by its path relative to the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) fn floor(folder: &str) -> Option<u8> {
    if let Some((_, floor)) = FLOORS.iter().find(|(f, _)| *f == folder) {
        return Some(*floor);
    }
    match folder.split_once('/')? {
        ("examples", name) if !name.contains('/') => Some(7),
        ("pmd", name) if !name.contains('/') => Some(if name.ends_with("-defs") { 2 } else { 3 }),
        _ => None,
    }
}

pub(crate) fn shown(folder: &str) -> &str {
    if folder.is_empty() { "the root package" } else { folder }
}

pub(crate) fn is_driver(folder: &str) -> bool {
    folder.starts_with("pmd/") && !folder.ends_with("-defs") && !folder.ends_with("-model")
}

/// Every member has a floor, is named after its folder, and is no catch-all.
pub(crate) fn name_faults(members: &[Member]) -> Vec<String> {
    let mut faults = Vec::new();
    for m in members {
        let last = m.folder.rsplit('/').next().unwrap_or_default();
        let named = if last.is_empty() { "ringwright".to_owned() } else { format!("ringwright-{last}") };
        if floor(&m.folder).is_none() {
            faults.push(format!("{} has no floor: give it one in FLOORS", m.folder));
        }
        if m.name != named {
            faults.push(format!("{} is named {}, not {named}", shown(&m.folder), m.name));
        }
        if CATCH_ALLS.contains(&last) {
            faults.push(format!("{} is a catch-all: name it after what it does", m.folder));
        }
    }
    faults
}

/// Normal and build dependencies go to lower floors, but for the exceptions, each of which is used.
pub(crate) fn arrow_faults(members: &[Member]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut unused = EXCEPTIONS.to_vec();
    for m in members {
        for (to, _) in m.needs.iter().filter(|(_, kind)| *kind != Kind::Dev) {
            let (Some(from_floor), Some(to_floor)) = (floor(&m.folder), floor(to)) else { continue };
            if to_floor < from_floor {
                continue;
            }
            let before = unused.len();
            unused.retain(|(a, b, _)| !(*a == m.folder && b == to));
            if unused.len() == before {
                let (a, b) = (shown(&m.folder), shown(to));
                faults.push(format!(
                    "{a} (floor {from_floor}) depends on {b} (floor {to_floor}): arrows go down only"
                ));
            }
        }
    }
    for (from, to, _) in unused {
        faults.push(format!("the exception {} -> {} is used by nobody: remove it", shown(from), shown(to)));
    }
    faults
}

/// What the datapath's parts must not know of each other.
pub(crate) fn seam_faults(members: &[Member]) -> Vec<String> {
    let mut faults = Vec::new();
    for m in members {
        for (to, kind) in &m.needs {
            let (from, to) = (m.folder.as_str(), to.as_str());
            let above = ["framework/graph", "framework/stages"];
            let dev = *kind == Kind::Dev;
            let mut rule = |broken: bool, why: &str| {
                if broken {
                    faults.push(format!("{} depends on {} ({kind:?}): {why}", shown(from), shown(to)));
                }
            };
            rule(
                !dev && above.contains(&from) && to.starts_with("pmd/"),
                "graph and stages never see a driver",
            );
            rule(
                !dev && from.starts_with("pmd/") && above.contains(&to),
                "a driver never sees graph or stages",
            );
            let model_of = from.strip_suffix("-model");
            rule(
                model_of.is_some_and(is_driver) && is_driver(to),
                "a model never depends on a driver, not even in tests",
            );
            rule(
                !dev && is_driver(from) && to.ends_with("-model"),
                "a driver may need a model in tests only",
            );
            rule(
                model_of.is_some() && to == "framework/pcie",
                "a model never depends on pcie: it is what pcie is checked by",
            );
        }
    }
    faults
}

pub(crate) fn may_be_unsafe(folder: &str) -> bool {
    MAY_BE_UNSAFE.contains(&folder) || (folder.starts_with("pmd/") && folder.ends_with("-model"))
}

pub(crate) fn attribute(line: &str, level: &str, lint: &str) -> bool {
    let line = line.trim_start();
    (line.starts_with("#[") || line.starts_with("#!["))
        && line.contains(&format!("{level}("))
        && line.contains(lint)
}

/// Unsafe code only where the design allows it, announced by an `// UNSAFETY:` line; every other crate forbids it.
pub(crate) fn unsafety_faults(member: &Member, sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    let allowed = may_be_unsafe(&member.folder);
    for s in sources {
        let opts_in = s
            .text
            .lines()
            .any(|l| attribute(l, "allow", "unsafe_code") || attribute(l, "expect", "unsafe_code"));
        let says_why = s
            .text
            .lines()
            .any(|l| l.trim_start().strip_prefix("// UNSAFETY:").is_some_and(|why| why.len() > 8));
        let forbids = s.text.lines().any(|l| attribute(l, "forbid", "unsafe_code"));
        if opts_in && !allowed {
            faults.push(format!(
                "{} allows unsafe code, but {} may not have any",
                s.path,
                shown(&member.folder)
            ));
        }
        if opts_in && !says_why {
            faults.push(format!("{} allows unsafe code without a line `// UNSAFETY: why`", s.path));
        }
        if member.roots.contains(&s.path) && !opts_in && !forbids {
            faults.push(format!("{} neither forbids unsafe code nor opts in to it", s.path));
        }
    }
    faults
}

/// Lines of a file before its test module; none of a file that is there for loom's model checks only.
pub(crate) fn without_tests(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    if lines.contains(&"#![cfg(loom)]") {
        return Vec::new();
    }
    let is_test_gate = |l: &str| l.starts_with("#[cfg(") && l.contains("test") && !l.contains("not(test");
    let opens_module = |l: &&&str| l.starts_with("mod ") && l.ends_with('{');
    let end = (0..lines.len()).find(|&i| {
        let item = lines[i + 1..].iter().find(|l| !l.starts_with("#[") && !l.starts_with("//"));
        is_test_gate(lines[i]) && item.as_ref().is_some_and(opens_module)
    });
    lines[..end.unwrap_or(lines.len())].to_vec()
}

pub(crate) fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name == "tests.rs" || path.contains("/tests/")
}

pub(crate) fn is_library_file(path: &str) -> bool {
    (path.starts_with("framework/") || path.starts_with("pmd/"))
        && path.contains("/src/")
        && !is_test_file(path)
}

/// All lines of a file before its tests.
pub(crate) fn file_lines(s: &Source) -> usize {
    without_tests(&s.text).len()
}

/// Lines that say something (docs/adr/0003): not blank, not a comment, not an import, not only closing brackets.
pub(crate) fn code_lines(s: &Source) -> usize {
    let is_code = |l: &&&str| {
        let l = l.trim();
        let import = l.starts_with("use ") || l.starts_with("pub use ");
        !l.starts_with("//") && !import && !l.chars().all(|c| "[]{}();,".contains(c))
    };
    without_tests(&s.text).iter().filter(is_code).count()
}

pub(crate) fn size_faults(sources: &[Source]) -> Vec<String> {
    let library = || sources.iter().filter(|s| is_library_file(&s.path));
    let mut faults: Vec<String> = library()
        .filter(|s| file_lines(s) > FILE_LIMIT)
        .map(|s| {
            format!("{} has {} lines without its tests: over {FILE_LIMIT}, split it", s.path, file_lines(s))
        })
        .collect();
    let core: usize =
        library().filter(|s| CORE.iter().any(|c| s.path.starts_with(&format!("{c}/")))).map(code_lines).sum();
    if core >= CORE_LIMIT {
        faults.push(format!("the core has {core} lines of code: it stays under {CORE_LIMIT}"));
    }
    faults
}
