//! Which instance is meant.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// No instance, or too many.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There is no folder of sockets.
    #[error("XDG_RUNTIME_DIR is not set, so there is no usual place for control sockets: use --socket PATH")]
    NoFolder,
    /// Nobody answers.
    #[error("no instance answers in {}: start one with `ringwright run`, or use --socket PATH", folder.display())]
    Nobody {
        /// Where they were looked for.
        folder: PathBuf,
    },
    /// More than one.
    #[error("several instances run, use --name with one of {}", names.join(", "))]
    Several {
        /// Their names.
        names: Vec<String>,
    },
    /// Two ways of naming one.
    #[error("--socket and --name both say which instance: use one of both")]
    Both,
    /// Not a name.
    #[error("{name:?} is no name: use that of the configuration file without .toml, or --socket PATH")]
    BadName {
        /// What was given.
        name: String,
    },
}

impl FindError {
    pub const fn is_usage(&self) -> bool {
        !matches!(self, Self::Nobody { .. })
    }
}

/// The socket that these options mean.
pub fn socket(socket: Option<&Path>, name: Option<&str>) -> Result<PathBuf, FindError> {
    if let Some(path) = socket {
        return if name.is_none() { Ok(path.to_owned()) } else { Err(FindError::Both) };
    }
    if let Some(name) = name.filter(|n| n.is_empty() || n.contains('/') || n.starts_with('.')) {
        return Err(FindError::BadName { name: name.to_owned() });
    }
    let folder = rt::control::default_folder().ok_or(FindError::NoFolder)?;
    match name {
        Some(name) => Ok(folder.join(format!("{name}.sock"))),
        None => the_only(folder),
    }
}

/// The only socket in `folder` that somebody listens on.
fn the_only(folder: PathBuf) -> Result<PathBuf, FindError> {
    let all = fs::read_dir(&folder).into_iter().flatten().flatten().map(|e| e.path());
    let sockets = all.filter(|p| p.extension().is_some_and(|e| e == "sock"));
    let mut alive: Vec<_> = sockets.filter(|p| UnixStream::connect(p).is_ok()).collect();
    alive.sort();
    match alive.len() {
        0 => Err(FindError::Nobody { folder }),
        1 => Ok(alive.remove(0)),
        _ => {
            let stem = |p: &PathBuf| p.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Err(FindError::Several { names: alive.iter().map(stem).collect() })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Those that listen in `folder`, for as long as the listeners live.
    fn listen(folder: &Path, names: &[&str]) -> Vec<UnixListener> {
        names.iter().map(|n| UnixListener::bind(folder.join(n)).unwrap()).collect()
    }

    #[test]
    fn the_only_one_that_answers_is_meant() {
        let folder = tempfile::tempdir().unwrap();
        let find = || the_only(folder.path().to_owned());
        assert!(matches!(find(), Err(FindError::Nobody { .. })));
        // A socket that a dead instance left does not count, nor does what is no control socket.
        drop(listen(folder.path(), &["dead.sock"]));
        let _others = listen(folder.path(), &["sw.socket", "sw"]);
        fs::write(folder.path().join("notes.sock"), "").unwrap();
        assert!(matches!(find(), Err(FindError::Nobody { .. })));
        let _wan = listen(folder.path(), &["wan.sock"]);
        assert_eq!(find().unwrap(), folder.path().join("wan.sock"));
        let _lan = listen(folder.path(), &["lan.sock"]);
        let e = find().unwrap_err();
        assert!(e.is_usage() && e.to_string().ends_with("--name with one of lan, wan"), "{e}");
        assert!(matches!(the_only("/nonexistent".into()), Err(FindError::Nobody { .. })));
    }

    #[test]
    fn a_path_is_taken_as_it_is_and_a_name_is_no_path() {
        assert_eq!(socket(Some(Path::new("x.sock")), None).unwrap(), Path::new("x.sock"));
        for name in ["", "a/b", "../a", ".hidden"] {
            assert!(matches!(socket(None, Some(name)), Err(FindError::BadName { .. })), "{name}");
        }
    }
}
