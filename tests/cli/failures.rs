//! What keeps a run from starting: what is wrong and what to do about it on stderr, nothing on stdout. Exit code 2 if what
//! was asked for can never be here, 1 if the machine does not give it now.

use std::fs;
use std::path::Path;

use crate::rig::{BINARY, Process, assert_clean, clean, cores, has, is_root, program, run, skip, turn};

/// Nearly as many buffers as the address window has room for, a quarter of a TiB: no machine that runs tests has that in
/// superpages.
const HUGE: &str = "120000000";

#[track_caller]
fn fails(args: &str) -> String {
    ends(1, args)
}

#[track_caller]
fn is_wrong(args: &str) -> String {
    ends(2, args)
}

#[track_caller]
fn ends(code: i32, args: &str) -> String {
    let _turn = turn();
    let ended = run(&format!("demo --for 300ms {args}")).expect(code);
    assert_eq!(ended.stdout, "", "{args}");
    let last = ended.stderr.lines().last().unwrap_or_default();
    last.strip_prefix("ringwright: ").unwrap_or_else(|| panic!("no reason: {}", ended.stderr)).to_owned()
}

/// The numbers of a text, in their order.
fn numbers(text: &str) -> Vec<usize> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
}

#[track_caller]
fn too_few(pages: &str, page_mib: usize) {
    let dir = format!("hugepages-{}kB", page_mib << 10);
    let error = fails(&format!("--pages {pages} --buffers {HUGE}"));
    if !Path::new("/sys/kernel/mm/hugepages").join(&dir).is_dir() {
        assert!(error.contains("this machine has no"), "{error}");
        return skip(&format!("{error}: there is nothing to run short of"));
    }
    let (asked, rest) = error.split_once(" free, ").unwrap_or_else(|| panic!("{error}"));
    let free = *numbers(asked).last().expect("how many are free");
    let (more, command) = rest.split_once(" more needed; run: echo ").unwrap_or_else(|| panic!("{error}"));
    let (total, file) = command.split_once(" | sudo tee ").unwrap_or_else(|| panic!("{error}"));
    let (more, total): (usize, usize) = (more.parse().expect("how many"), total.parse().expect("how many"));
    let gib: f64 = asked.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("asked ... GiB");
    assert!(asked.contains(" GiB of "), "{error}");
    let need = ((free + more) * page_mib) as f64 / 1024.0;
    assert!((need - gib).abs() <= 0.06, "{free} free and {more} more are {need} GiB: {error}");
    assert!(file.contains(&dir), "{error}");
    let have: usize =
        fs::read_to_string(file).expect("the file of the command").trim().parse().expect("a count");
    assert_eq!(total, have + more, "the command asks for those there are and those missing: {error}");
}

#[test]
fn too_few_2m_pages_come_with_the_command_that_gets_them() {
    too_few("2M", 2);
}

#[test]
fn too_few_1g_pages_come_with_the_command_that_gets_them() {
    too_few("1G", 1024);
}

#[test]
fn a_node_that_is_not_there_is_answered_with_those_that_are() {
    let Ok(online) = fs::read_to_string("/sys/devices/system/node/online") else {
        return skip("the kernel does not say which memory nodes there are");
    };
    let error = is_wrong("--node 999");
    assert!(error.contains("node 999 does not exist"), "{error}");
    let there = error.split("this machine has").nth(1).unwrap_or_default();
    for node in [numbers(&online).first(), numbers(&online).last()] {
        assert!(numbers(there).contains(node.expect("a node")), "{online} in {error}");
    }
}

#[test]
fn a_pool_too_small_for_its_rings_is_summed_up_and_the_sum_is_enough() {
    let error = is_wrong("--buffers 256");
    let (sum, rest) = error.split_once(" = ").unwrap_or_else(|| panic!("{error}"));
    let need = numbers(rest)[0];
    assert_eq!(numbers(sum).into_iter().sum::<usize>(), need, "{error}");
    for words in ["rx rings", "tx rings", "magazines", "inboxes", "the pool has 256", "--ring"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    assert!(error.contains(&format!("--buffers {need}")), "{error}");
    clean(&format!("--buffers {need}"));
    assert!(is_wrong(&format!("--buffers {}", need - 1)).contains(&need.to_string()));
}

#[test]
fn pools_that_cannot_be() {
    for buffers in ["0", "63", "999999999999"] {
        let error = is_wrong(&format!("--buffers {buffers}"));
        assert!(error.contains(buffers) && error.contains("use 64 to"), "{error}");
    }
}

#[test]
fn a_core_that_is_not_there_is_answered_with_those_that_are() {
    let mine = cores();
    for option in ["--worker-core", "--device-core"] {
        let error = is_wrong(&format!("{option} 4096"));
        assert!(error.contains(option) && error.contains("core 4096"), "{error}");
        let may = numbers(error.split("may use core").nth(2).unwrap_or(&error));
        assert!(mine.iter().all(|c| may.contains(c)), "{mine:?} in {error}");
    }
}

#[test]
fn more_workers_than_the_device_has_queues() {
    let core = cores()[0].to_string();
    let workers = vec![core.as_str(); 17].join(",");
    let error = is_wrong(&format!("--worker-core {workers} --ring 8"));
    assert!(error.contains("17 workers asked") && error.contains("1 to 16"), "{error}");
}

/// The command under a small memlock limit, and without the right to pass over it.
fn limited(args: &str) -> Option<Process> {
    let mut words = vec!["prlimit", "--memlock=65536:65536"];
    if is_root() {
        words.extend(["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"]);
    }
    if let Some(missing) = ["prlimit", "setpriv"].into_iter().find(|p| words.contains(p) && !has(p)) {
        skip(&format!("{missing} is not there to limit what may be locked"));
        return None;
    }
    words.push(BINARY);
    words.extend(args.split_whitespace());
    Some(Process::start(&mut program(&words)))
}

#[test]
fn a_memlock_limit_is_named_with_three_ways_round_it() {
    let _turn = turn();
    let Some(run) = limited("demo --for 300ms --pages 4K") else { return };
    let ended = run.end().expect(1);
    assert_eq!(ended.stdout, "");
    for words in ["memlock limit of 64 KiB", "ulimit -l unlimited", "LimitMEMLOCK=infinity", "2M pages"] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}

#[test]
fn a_memlock_limit_does_not_keep_any_pages_from_working() {
    let _turn = turn();
    let Some(run) = limited("demo --json --for 300ms --pages any") else { return };
    assert_clean(run.end());
}
