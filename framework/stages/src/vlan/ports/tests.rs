//! What may be said of ports, and what it means.

use super::*;

fn vlans(ports: &VlanPorts, port: u16) -> Vec<u16> {
    ports.vlans_of(port).collect()
}

#[test]
fn access_and_trunk_ports_are_in_their_vlans() {
    let ports =
        VlanPorts::new(&[(0, 10), (7, 4094)], &[(3, vec![1..=2, 20..=20]), (4, vec![])], &[(3, 99), (4, 5)]);
    let ports = ports.unwrap();
    assert_eq!(
        [0, 7, 3, 4, 1, 8].map(|p| vlans(&ports, p)),
        [vec![10], vec![4094], vec![1, 2, 20, 99], vec![5], vec![], vec![]]
    );
    let trunk = ports.rule(3).unwrap();
    assert!(trunk.untagged == 99 && trunk.native && trunk.tagged.has(20) && !trunk.tagged.has(99));
    assert_eq!(format!("{:?}", trunk.tagged), "[1, 2, 20]");
    assert_eq!(vlans(&VlanPorts::everywhere(&[5]), 5).len(), 4094);
}

#[test]
fn what_cannot_be_is_refused() {
    let new = |a: &[(u16, u16)], t: &[(u16, Vec<RangeInclusive<u16>>)], n: &[(u16, u16)]| {
        VlanPorts::new(a, t, n).unwrap_err()
    };
    assert_eq!(new(&[(0, 0)], &[], &[]), StageError::Vlan(0));
    assert_eq!(new(&[], &[(0, vec![1..=4095])], &[]), StageError::Vlan(4095));
    assert_eq!(new(&[], &[(0, vec![1..=2])], &[(0, 5000)]), StageError::Vlan(5000));
    assert_eq!(new(&[(0, 1), (0, 2)], &[], &[]), StageError::PortTwice(0));
    assert_eq!(new(&[(0, 1)], &[(0, vec![2..=3])], &[]), StageError::PortTwice(0));
    assert_eq!(new(&[], &[(0, vec![])], &[(0, 1), (0, 2)]), StageError::PortTwice(0));
    assert_eq!(new(&[(0, 1)], &[], &[(0, 1)]), StageError::NotATrunk(0));
    assert!(StageError::NotATrunk(3).to_string().starts_with("port 3 has a native VLAN and is no trunk"));
    assert!(StageError::Vlan(0).to_string().contains("use 1 to 4094"));
}

#[test]
fn configuration_is_read_or_refused() {
    let names = PortNames(&[("p0", 4), ("p1", 2), ("p2", 3)]);
    let read = |text: &str| VlanPorts::read(&text.parse().unwrap(), &names).map_err(|e| e.to_string());
    let ports =
        read("access = { p0 = 10 }\ntrunk = { p1 = [10, 20, \"100-102\"], p2 = \"7\" }\nnative = { p1 = 1 }")
            .unwrap();
    assert_eq!([4, 2, 3].map(|p| vlans(&ports, p)), [vec![10], vec![1, 10, 20, 100, 101, 102], vec![7]]);
    let wrong = |text: &str, part: &str| {
        let e = read(text).unwrap_err();
        assert!(e.contains(part), "{text}: {e}");
    };
    wrong("", "access: is missing, and trunk too");
    wrong("access = { p9 = 10 }", "access: there is no port p9; did you mean p0?");
    wrong("access = 10", "access: 10 is no table of ports: write { p0 = 10 }");
    wrong("access = { p0 = 0 }", "access.p0: 0 is no VLAN from 1 to 4094");
    wrong("access = { p0 = \"4095\" }", "access.p0: \"4095\" is no VLAN");
    wrong("access = { p0 = [1, 2] }", "access.p0: is to be one VLAN");
    wrong("trunk = { p0 = [10, \"30-20\"] }", "trunk.p0: \"30-20\" is no VLAN");
    wrong("trunk = { p0 = [10, 1.5] }", "trunk.p0: 1.5 is no VLAN");
    wrong("trunk = { p0 = \"x-y\" }", "trunk.p0: \"x-y\" is no VLAN");
    wrong("access = { p0 = 1 }\ntrunk = { p0 = 2 }", "trunk: p0 is an access port as well");
    wrong("access = { p0 = 1 }\nnative = { p0 = 2 }", "native: p0 is no trunk");
}
