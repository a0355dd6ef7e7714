//! A session of its own with a high autogroup priority.
//!
//! With autogroups the kernel shares CPU between sessions first: `nice` does nothing against other logins. So the
//! program runs itself again in a new session, whose group it raises; the session it was started from is left alone.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use std::{env, fs, io};

use rustix::process::{Signal, set_parent_process_death_signal, setsid};

/// Set for the copy that runs in the new session.
const MARK: &str = "RINGWRIGHT_BENCH_SESSION";

/// Runs this program again in a session of its own and hands its exit code back; `None` in the copy itself, which
/// then goes on.
pub fn enter() -> Option<ExitCode> {
    if env::var_os(MARK).is_some() {
        // The copy must not outlive the terminal's Ctrl-C, which reaches only the parent.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
        let _ = setsid();
        return None;
    }
    let exe = env::current_exe().ok()?;
    let status = Command::new(exe).args(env::args_os().skip(1)).env(MARK, "1").status();
    Some(match status {
        Ok(s) => ExitCode::from(s.code().unwrap_or_else(|| 128 + s.signal().unwrap_or(0)) as u8),
        Err(e) => {
            eprintln!("cannot start a copy of this program in a new session: {e}");
            ExitCode::FAILURE
        }
    })
}

/// Raises the autogroup of this process; the words for the manifest.
pub fn raise() -> String {
    const FILE: &str = "/proc/self/autogroup";
    match fs::write(FILE, "-20") {
        Ok(()) => "autogroup nice -20, own session".into(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => "no autogroups in this kernel".into(),
        Err(e) => format!("autogroup priority not raised ({e}): run as root for steadier figures"),
    }
}
