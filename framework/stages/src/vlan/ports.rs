//! Which port is in which VLAN, and how its frames say so.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;

use config::KeyError;
use toml::{Table, Value};

use crate::{PortNames, StageError};

/// VLANs that there may be: 0 is none, and 4095 reserved (IEEE 802.1Q-2018, table 9-2).
pub(crate) const VLANS: RangeInclusive<u16> = 1..=4094;

/// A set of VLANs.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Set(Box<[u64; 64]>);

impl Set {
    fn empty() -> Self {
        Self(Box::new([0; 64]))
    }
    fn add(&mut self, vid: u16) {
        self.0[usize::from(vid / 64) % 64] |= 1 << (vid % 64);
    }
    #[inline(always)]
    pub const fn has(&self, vid: u16) -> bool {
        self.0[(vid / 64 % 64) as usize] >> (vid % 64) & 1 == 1
    }
    fn all(&self) -> impl Iterator<Item = u16> {
        VLANS.filter(|&vid| self.has(vid))
    }
}

impl core::fmt::Debug for Set {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

/// One port's VLANs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Those of frames with a tag, in and out.
    pub tagged: Set,
    /// That of frames without, in and out; it is none of `tagged`. 0: there is none.
    pub untagged: u16,
    /// Frames that come in with the tag of `untagged` are in it all the same.
    pub native: bool,
}

/// Which ports are in which VLANs: what the [`crate::Vlan`] stages and the bridge between them are told.
///
/// An *access* port is in one VLAN, and its frames have no tag. A *trunk* port is in many, and its frames have the tag of theirs; those of its
/// *native* VLAN, if it has one, have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VlanPorts {
    /// By number.
    rules: Vec<Option<Rule>>,
}

impl VlanPorts {
    /// Access ports with their VLAN, trunk ports with ranges of VLANs, and the native VLANs of some trunk ports, which need not be listed
    /// among the others.
    ///
    /// # Errors
    /// A VLAN that is none, a port that is named twice, a native VLAN of a port that is no trunk.
    pub fn new(
        access: &[(u16, u16)],
        trunk: &[(u16, Vec<RangeInclusive<u16>>)],
        native: &[(u16, u16)],
    ) -> Result<Self, StageError> {
        let mut ports = Self::default();
        for &(port, vid) in access {
            ports.add(port, Rule { tagged: Set::empty(), untagged: checked(vid)?, native: false })?;
        }
        for (port, ranges) in trunk {
            let mut tagged = Set::empty();
            for range in ranges {
                checked(*range.start())?;
                checked(*range.end())?;
                range.clone().for_each(|vid| tagged.add(vid));
            }
            ports.add(*port, Rule { tagged, untagged: 0, native: true })?;
        }
        for &(port, vid) in native {
            let rule = ports.rules.get_mut(usize::from(port)).and_then(Option::as_mut);
            let Some(rule) = rule.filter(|r| r.native) else { return Err(StageError::NotATrunk(port)) };
            if rule.untagged != 0 && rule.untagged != vid {
                return Err(StageError::PortTwice(port));
            }
            rule.untagged = checked(vid)?;
        }
        Ok(ports)
    }
    /// All `ports` are trunks of all VLANs, with none native.
    pub fn everywhere(ports: &[u16]) -> Self {
        let mut tagged = Set::empty();
        VLANS.for_each(|vid| tagged.add(vid));
        let mut all = Self::default();
        for &port in ports {
            *all.place(port) = Some(Rule { tagged: tagged.clone(), untagged: 0, native: true });
        }
        all
    }

    fn place(&mut self, port: u16) -> &mut Option<Rule> {
        let i = usize::from(port);
        self.rules.resize(self.rules.len().max(i + 1), None);
        &mut self.rules[i]
    }
    fn add(&mut self, port: u16, rule: Rule) -> Result<(), StageError> {
        match self.place(port).replace(rule) {
            None => Ok(()),
            Some(_) => Err(StageError::PortTwice(port)),
        }
    }

    #[inline(always)]
    pub(super) fn rule(&self, port: u16) -> Option<&Rule> {
        self.rules.get(usize::from(port))?.as_ref()
    }
    /// The VLANs that `port` is in, with their tags or without.
    pub fn vlans_of(&self, port: u16) -> impl Iterator<Item = u16> {
        let rule = self.rule(port);
        VLANS.filter(move |&vid| rule.is_some_and(|r| r.tagged.has(vid) || r.untagged == vid))
    }
}

const fn checked(vid: u16) -> Result<u16, StageError> {
    if vid >= 1 && vid <= 4094 { Ok(vid) } else { Err(StageError::Vlan(vid)) }
}

impl VlanPorts {
    /// Keys that [`VlanPorts::read`] reads.
    pub const KEYS: &'static [&'static str] = &["access", "trunk", "native"];

    /// From `access = { p0 = 10 }`, `trunk = { p1 = [10, 20, "100-199"] }` and `native = { p1 = 1 }`.
    ///
    /// # Errors
    /// A port that is not there, what is no VLAN, and what [`VlanPorts::new`] refuses.
    pub(super) fn read(table: &Table, names: &PortNames<'_>) -> Result<Self, KeyError> {
        let one = |key: &str| -> Result<Vec<(u16, u16)>, KeyError> {
            each(table, key, names, |ranges| match ranges[..] {
                [ref r] if r.start() == r.end() => Ok(*r.start()),
                _ => Err("is to be one VLAN: 10".to_owned()),
            })
        };
        let (access, native) = (one("access")?, one("native")?);
        let trunk = each(table, "trunk", names, Ok)?;
        if access.is_empty() && trunk.is_empty() {
            return Err(KeyError::new(
                "access",
                "is missing, and trunk too: write access = { p0 = 10 }, or trunk = { p0 = [10, \"20-29\"] }",
            ));
        }
        // What it refuses is a matter of more than one key.
        let named = |port: &u16| names.0.iter().find(|p| p.1 == *port).map_or("", |p| p.0);
        Self::new(&access, &trunk, &native).map_err(|e| match &e {
            StageError::PortTwice(p) => {
                KeyError::new("trunk", format!("{} is an access port as well: choose one", named(p)))
            }
            StageError::NotATrunk(p) => {
                KeyError::new("native", format!("{} is no trunk: leave it out, or add it to trunk", named(p)))
            }
            other => KeyError::new("access", other.to_string()),
        })
    }
}

/// The ports in the table at `key`, with what `make` makes of their VLANs.
fn each<T>(
    table: &Table,
    key: &str,
    names: &PortNames<'_>,
    make: impl Fn(Vec<RangeInclusive<u16>>) -> Result<T, String>,
) -> Result<Vec<(u16, T)>, KeyError> {
    let ports = match table.get(key) {
        None => return Ok(Vec::new()),
        Some(Value::Table(ports)) => ports,
        Some(other) => {
            return Err(KeyError::new(key, format!("{other} is no table of ports: write {{ p0 = 10 }}")));
        }
    };
    let mut all = BTreeMap::new();
    for (name, value) in ports {
        let made = ranges(value).and_then(&make);
        let made = made.map_err(|problem| KeyError::new(format!("{key}.{name}"), problem))?;
        all.insert(names.number(key, name)?, made);
    }
    Ok(all.into_iter().collect())
}

/// VLANs: one, a range in quotes, or a list of these.
fn ranges(value: &Value) -> Result<Vec<RangeInclusive<u16>>, String> {
    let list = match value {
        Value::Array(list) => list.as_slice(),
        one => core::slice::from_ref(one),
    };
    list.iter().map(range).collect()
}
fn range(value: &Value) -> Result<RangeInclusive<u16>, String> {
    let vid = |n: &str| n.trim().parse::<u16>().ok().filter(|n| VLANS.contains(n));
    let both = match value {
        Value::Integer(n) => u16::try_from(*n).ok().filter(|n| VLANS.contains(n)).map(|n| n..=n),
        Value::String(s) => {
            let (first, last) = s.split_once('-').unwrap_or((s, s));
            vid(first).zip(vid(last)).filter(|(a, b)| a <= b).map(|(a, b)| a..=b)
        }
        _ => None,
    };
    both.ok_or_else(|| format!("{value} is no VLAN from 1 to 4094, nor a range of them: 10 or \"20-29\""))
}

#[cfg(test)]
mod tests;
