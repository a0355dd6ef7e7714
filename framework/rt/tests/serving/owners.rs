//! Whose a socket is, when processes die.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ringwright_rt::control::{Control, Limits, ServeError};

use crate::host::{Fake, Folder, Line, PATIENCE};

const WHERE: &str = "RINGWRIGHT_TEST_SOCKET";

/// Not a test: another process, which serves a socket until it is killed.
#[test]
#[ignore = "the other tests here start it as a process of its own"]
fn another_process() {
    let Some(path) = std::env::var_os(WHERE) else { return };
    let _control = Control::start(Path::new(&path), Fake::new(), Limits::default()).unwrap();
    std::thread::sleep(4 * PATIENCE);
}

struct Other(Child);

impl Other {
    /// Starts it, and waits until it is there.
    fn serve(path: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "owners::another_process", "--ignored"]).env(WHERE, path);
        let other = Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let deadline = Instant::now() + PATIENCE;
        while std::os::unix::net::UnixStream::connect(path).is_err() {
            assert!(Instant::now() < deadline, "it does not come up");
            std::thread::sleep(Duration::from_millis(5));
        }
        other
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_killed_owner_leaves_its_socket_to_the_next() {
    let dir = Folder::new();
    let path = dir.at("sw.sock");
    let mut other = Other::serve(&path);
    let e = Control::start(&path, Fake::new(), Limits::default()).unwrap_err();
    assert!(matches!(e, ServeError::Taken { pid, .. } if pid == Some(other.0.id())), "{e}");

    other.0.kill().unwrap();
    assert_eq!(other.0.wait().unwrap().signal(), Some(9));
    assert!(path.exists(), "it had no chance to remove it");
    let control = Control::start(&path, Fake::new(), Limits::default()).unwrap();
    assert_eq!(control.path(), path);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let hello = Line::connect(&path).ask("{\"version\":1,\"command\":\"hello\"}");
    assert_eq!(hello["result"]["pid"], std::process::id());
    control.stop();
    assert!(!path.exists());
}

#[test]
fn of_many_that_start_at_once_one_has_the_socket() {
    let dir = Folder::new();
    let path = dir.at("sw.sock");
    for _ in 0..20 {
        let results: Vec<_> = std::thread::scope(|s| {
            let start = || Control::start(&path, Fake::new(), Limits::default());
            let all: Vec<_> = (0..4).map(|_| s.spawn(start)).collect();
            all.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1);
        assert!(lost.into_iter().all(|e| matches!(e, Err(ServeError::Taken { .. }))));
        assert_eq!(Line::connect(&path).ask("{\"version\":1,\"command\":\"hello\"}")["ok"], true);
    }
}
