use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A folder that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("rw-place-{}-{n}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        Self(dir)
    }
    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    fn list(&self) -> Vec<String> {
        let all = fs::read_dir(&self.0).unwrap();
        all.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_socket_is_private_and_goes_with_its_owner() {
    let dir = Folder::new();
    let path = dir.at("deep/er/a.sock");
    let (place, listener) = Place::take(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(fs::metadata(dir.at("deep/er")).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(dir.at("deep/er/a.sock.lock")).unwrap().permissions().mode() & 0o777, 0o600);
    UnixStream::connect(&path).unwrap();
    listener.accept().unwrap();
    drop(place);
    assert_eq!(fs::read_dir(dir.at("deep/er")).unwrap().count(), 0);
}

#[test]
fn the_second_owner_is_told_who_the_first_is() {
    let dir = Folder::new();
    let path = dir.at("a.sock");
    let (_place, _listener) = Place::take(&path).unwrap();
    let e = Place::take(&path).unwrap_err();
    let ServeError::Taken { pid, .. } = &e else { panic!("{e}") };
    assert_eq!(*pid, Some(std::process::id()));
    let said = e.to_string();
    assert!(
        said.contains(path.to_str().unwrap()) && said.contains(&std::process::id().to_string()),
        "{said}"
    );
    UnixStream::connect(&path).expect("the first goes on");
}

#[test]
fn what_a_dead_process_left_is_taken_over() {
    let dir = Folder::new();
    let path = dir.at("a.sock");
    drop(UnixListener::bind(&path).unwrap());
    fs::write(dir.at("a.sock.lock"), "999999\n").unwrap();
    let (place, _listener) = Place::take(&path).unwrap();
    assert_eq!(fs::read_to_string(dir.at("a.sock.lock")).unwrap(), format!("{}\n", std::process::id()));
    UnixStream::connect(&path).unwrap();
    drop(place);
    assert_eq!(dir.list(), Vec::<String>::new());
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let dir = Folder::new();
    let path = dir.at("a.sock");
    fs::write(&path, "notes").unwrap();
    assert!(matches!(Place::take(&path), Err(ServeError::NotASocket { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "notes");
    fs::remove_file(&path).unwrap();

    let other = UnixListener::bind(&path).unwrap();
    assert!(matches!(Place::take(&path), Err(ServeError::Taken { pid: None, .. })), "somebody listens");
    drop(other);
    fs::remove_file(&path).unwrap();

    let (place, _listener) = Place::take(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let _newer = UnixListener::bind(&path).unwrap();
    drop(place);
    assert_eq!(dir.list(), ["a.sock"], "another's socket stays");
}

#[test]
fn a_link_in_place_of_the_lock_file_is_not_followed() {
    let dir = Folder::new();
    fs::write(dir.at("victim"), "text").unwrap();
    std::os::unix::fs::symlink(dir.at("victim"), dir.at("a.sock.lock")).unwrap();
    let e = Place::take(&dir.at("a.sock")).unwrap_err();
    assert!(matches!(e, ServeError::Place { .. }), "{e}");
    assert_eq!(fs::read_to_string(dir.at("victim")).unwrap(), "text");
}

#[test]
fn a_lock_file_removed_by_hand_does_not_make_two_owners() {
    let dir = Folder::new();
    let path = dir.at("a.sock");
    let (place, _listener) = Place::take(&path).unwrap();
    fs::remove_file(dir.at("a.sock.lock")).unwrap();
    assert!(matches!(Place::take(&path), Err(ServeError::Taken { pid: None, .. })));
    drop(place);
    Place::take(&path).unwrap();
}

#[test]
fn paths_that_cannot_be() {
    let dir = Folder::new();
    for path in [PathBuf::from("/"), dir.at(&"x".repeat(120)), PathBuf::new()] {
        assert!(matches!(Place::take(&path), Err(ServeError::BadPath { .. })), "{path:?}");
    }
    fs::write(dir.at("file"), "").unwrap();
    let e = Place::take(&dir.at("file/a.sock")).unwrap_err();
    assert!(e.to_string().contains("making the socket's folder"), "{e}");
}
