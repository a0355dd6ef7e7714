//! The kinds of stages that a configuration can name, with their keys.
//!
//! | kind | keys | first exit |
//! |---|---|---|
//! | `forward`, `macswap` | `pairs = [["p0", "p1"]]`, `routes` (one way); with two ports, a pair of them by itself | `out` |
//! | `l2switch` | `ports` (all), `isolated`, `table`, `table_full = "flood"` or `"drop"`, `ageing` | `out` |
//! | `count` | | `out` |
//! | `tee` | | `out` |
//! | `drop` | `reason` | |

use std::sync::Arc;
use std::time::Duration;

use config::{KeyError, Keys};
use graph::{AnyStage, Exit, ExitInfo, Graph, Stage};
use meter::DropReason;
use rt::config::{BuildEnv, PortNames, Recipe, StageEnv, StageKind};
use stages::{Count, Drop, Forward, L2Switch, L2SwitchConfig, MacSwap, PortMap, TableFull, Tee};

/// All kinds in the box.
pub fn all() -> Vec<Box<dyn StageKind>> {
    let kinds: [Kind; 6] = [
        Kind { kind: Forward::KIND, keys: &["pairs", "routes"], read: read_forward },
        Kind { kind: MacSwap::KIND, keys: &["pairs", "routes"], read: read_macswap },
        Kind {
            kind: L2Switch::KIND,
            keys: &["ports", "isolated", "table", "table_full", "ageing"],
            read: read_l2switch,
        },
        Kind { kind: Count::KIND, keys: &[], read: |_, _| Ok(plain(|_| Ok(Count::new()))) },
        Kind { kind: Tee::KIND, keys: &[], read: |_, _| Ok(plain(|env| Ok(Tee::new(env.pool)))) },
        Kind { kind: Drop::KIND, keys: &["reason"], read: read_drop },
    ];
    kinds.map(|k| -> Box<dyn StageKind> { Box::new(k) }).into()
}

type Read = fn(&Keys<'_>, &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError>;

struct Kind {
    kind: &'static str,
    keys: &'static [&'static str],
    read: Read,
}

impl StageKind for Kind {
    fn kind(&self) -> &'static str {
        self.kind
    }
    fn keys(&self) -> &'static [&'static str] {
        self.keys
    }
    fn read(&self, keys: &Keys<'_>, env: &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError> {
        (self.read)(keys, env)
    }
}

/// A recipe for stages of type `S`: how to build one, and how to tell it of other ports.
struct Plain<B, U> {
    exits: &'static [ExitInfo],
    build: B,
    update: U,
}

impl<S, B, U> Recipe for Plain<B, U>
where
    S: Stage + 'static,
    B: Fn(&BuildEnv<'_>) -> Result<S, String> + Send + Sync,
    U: Fn(&mut S, &PortNames) -> Result<(), String> + Send + Sync,
{
    fn exits(&self) -> &'static [ExitInfo] {
        self.exits
    }
    fn build(&self, env: &BuildEnv<'_>) -> Result<Box<dyn AnyStage>, String> {
        Ok(Box::new((self.build)(env)?))
    }
    fn set_ports(&self, graph: &mut Graph, name: &str, ports: &PortNames) -> Result<(), String> {
        graph.stage_mut::<S>(name).map_or(Ok(()), |stage| (self.update)(stage, ports))
    }
}

fn plain<S: Stage + 'static>(
    build: impl Fn(&BuildEnv<'_>) -> Result<S, String> + Send + Sync + 'static,
) -> Arc<dyn Recipe> {
    updated(build, |_, _| Ok(()))
}

fn updated<S: Stage + 'static>(
    build: impl Fn(&BuildEnv<'_>) -> Result<S, String> + Send + Sync + 'static,
    update: impl Fn(&mut S, &PortNames) -> Result<(), String> + Send + Sync + 'static,
) -> Arc<dyn Recipe> {
    Arc::new(Plain { exits: S::Exit::EXITS, build, update })
}

/// Partners by name, so that a port that comes back under its name is found again.
#[derive(Clone)]
struct Partners(Vec<(String, String)>);

impl Partners {
    fn read(keys: &Keys<'_>, env: &StageEnv<'_>) -> Result<Self, KeyError> {
        let mut all = Vec::new();
        for (key, both) in [("pairs", true), ("routes", false)] {
            for [a, b] in keys.pairs(key)?.unwrap_or_default() {
                for name in [a, b] {
                    env.ports.find(key, name)?;
                }
                all.push((a.to_owned(), b.to_owned()));
                if both {
                    all.push((b.to_owned(), a.to_owned()));
                }
            }
        }
        if !keys.has("pairs") && !keys.has("routes") {
            let names: Vec<_> = env.ports.iter().collect();
            let [a, b] = names[..] else {
                let problem = format!(
                    "is missing: with {} ports say which send to each other, as pairs = [[\"p0\", \"p1\"]]",
                    names.len()
                );
                return Err(KeyError::new("pairs", problem));
            };
            all = vec![(a.to_owned(), b.to_owned()), (b.to_owned(), a.to_owned())];
        }
        let partners = Self(all);
        partners.map(env.ports).map_err(|problem| KeyError::new("pairs", problem))?;
        Ok(partners)
    }

    /// As numbers; who is not there has no partner.
    fn map(&self, ports: &PortNames) -> Result<PortMap, String> {
        let number = |(a, b): &(String, String)| Some((ports.number(a)?, ports.number(b)?));
        PortMap::new(self.0.iter().filter_map(number)).map_err(|e| e.to_string())
    }
}

fn read_forward(keys: &Keys<'_>, env: &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError> {
    let partners = Partners::read(keys, env)?;
    let later = partners.clone();
    Ok(updated(
        move |env| Ok(Forward::new(partners.map(env.ports)?)),
        move |stage: &mut Forward, ports| {
            *stage = Forward::new(later.map(ports)?);
            Ok(())
        },
    ))
}

fn read_macswap(keys: &Keys<'_>, env: &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError> {
    let partners = Partners::read(keys, env)?;
    let later = partners.clone();
    Ok(updated(
        move |env| Ok(MacSwap::new(Some(partners.map(env.ports)?))),
        move |stage: &mut MacSwap, ports| {
            *stage = MacSwap::new(Some(later.map(ports)?));
            Ok(())
        },
    ))
}

/// Ports of a bridge by name; `None` for all there are.
#[derive(Clone)]
struct Members {
    ports: Option<Vec<String>>,
    isolated: Vec<String>,
}

impl Members {
    fn read(keys: &Keys<'_>, env: &StageEnv<'_>) -> Result<Self, KeyError> {
        let names = |key: &str| -> Result<Option<Vec<String>>, KeyError> {
            let Some(all) = keys.texts(key)? else { return Ok(None) };
            all.iter().try_for_each(|n| env.ports.find(key, n).map(|_| ()))?;
            Ok(Some(all.iter().map(|n| (*n).to_owned()).collect()))
        };
        Ok(Self { ports: names("ports")?, isolated: names("isolated")?.unwrap_or_default() })
    }

    /// Numbers of the ports that are there, and of those that are isolated.
    fn numbers(&self, ports: &PortNames) -> (Vec<u16>, Vec<u16>) {
        let known = |names: &[String]| names.iter().filter_map(|n| ports.number(n)).collect::<Vec<_>>();
        let all = self.ports.as_ref().map_or_else(|| ports.numbers(), |n| known(n));
        (all, known(&self.isolated))
    }
}

fn read_l2switch(keys: &Keys<'_>, env: &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError> {
    let members = Members::read(keys, env)?;
    let mut config = L2SwitchConfig::new(&[]);
    config.table = keys.number("table", config.table as u64, 1..=1 << 24)? as usize;
    config.ageing = keys.time("ageing", Duration::from_secs(300))?;
    let words = [("flood", TableFull::Flood), ("drop", TableFull::Drop)];
    config.table_full = keys.word("table_full", config.table_full, &words)?;
    let later = members.clone();
    Ok(updated(
        move |env| {
            let (ports, isolated) = members.numbers(env.ports);
            let config = L2SwitchConfig { ports, isolated, ..config.clone() };
            L2Switch::new(&config, env.pool, hw::tsc_hz(), seed()).map_err(|e| e.to_string())
        },
        move |stage: &mut L2Switch, ports| {
            let (ports, isolated) = later.numbers(ports);
            stage.set_ports(&ports, &isolated).map_err(|e| e.to_string())
        },
    ))
}

/// A number that nobody outside can know.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

fn read_drop(keys: &Keys<'_>, _: &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError> {
    let reason = match keys.text("reason")? {
        None => DropReason::Filtered,
        Some(name) => name.parse().map_err(|e: String| KeyError::new("reason", e))?,
    };
    Ok(plain(move |_| Ok(Drop::new(reason))))
}
