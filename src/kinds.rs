//! The kinds of stages that a configuration can name, with their keys.
//!
//! Their keys and exits are in `docs/configuration.md`.

use std::sync::{Arc, Mutex, PoisonError};

use config::{KeyError, Keys};
use graph::{AnyStage, Exit, ExitInfo, Graph, Stage};
use meter::DropReason;
use rt::config::{BuildEnv, PortNames, Recipe, StageEnv, StageKind};
use stages::{
    Count, Drop, Filter, FilterConfig, Forward, L2Switch, L2SwitchConfig, MacSwap, Peer, PortMap, Sample,
    SampleConfig, Tee, Vlan, VlanConfig,
};
use toml::Table;

/// All kinds in the box.
pub fn all() -> Vec<Box<dyn StageKind>> {
    let kind = |kind, keys, read| -> Box<dyn StageKind> { Box::new(Kind { kind, keys, read }) };
    vec![
        kind(Forward::KIND, PARTNERS, read_forward),
        kind(MacSwap::KIND, PARTNERS, read_macswap),
        kind(L2Switch::KIND, L2SwitchConfig::KEYS, read_l2switch),
        kind(Vlan::KIND, VlanConfig::KEYS, read_vlan),
        kind(Filter::KIND, FilterConfig::KEYS, read_filter),
        kind(Sample::KIND, SampleConfig::KEYS, read_sample),
        kind(Count::KIND, &[], |_, _| Ok(plain(|_| Ok(Count::new())))),
        kind(Tee::KIND, &[], |_, _| Ok(plain(|env| Ok(Tee::new(env.pool))))),
        kind(Drop::KIND, &["reason"], read_drop),
    ]
}

/// Keys of stages that send from one port to another.
const PARTNERS: &[&str] = &["pairs", "routes"];

type Read = fn(&Table, &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError>;

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
    fn read(&self, own: &Table, env: &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError> {
        (self.read)(own, env)
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
    fn read(own: &Table, env: &StageEnv<'_>) -> Result<Self, KeyError> {
        let keys = Keys::new(own, PARTNERS)?;
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

fn read_forward(own: &Table, env: &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError> {
    let partners = Partners::read(own, env)?;
    let later = partners.clone();
    Ok(updated(
        move |env| Ok(Forward::new(partners.map(env.ports)?)),
        move |stage: &mut Forward, ports| {
            *stage = Forward::new(later.map(ports)?);
            Ok(())
        },
    ))
}

fn read_macswap(own: &Table, env: &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError> {
    let partners = Partners::read(own, env)?;
    let later = partners.clone();
    Ok(updated(
        move |env| Ok(MacSwap::new(Some(partners.map(env.ports)?))),
        move |stage: &mut MacSwap, ports| {
            *stage = MacSwap::new(Some(later.map(ports)?));
            Ok(())
        },
    ))
}

/// Reads something with the names of all ports that ever were: what named a port is not wrong once it has gone.
fn with_names<T>(
    ports: &PortNames,
    read: impl FnOnce(&stages::PortNames<'_>) -> Result<T, KeyError>,
) -> Result<T, KeyError> {
    let names: Vec<_> = ports.ever().collect();
    read(&stages::PortNames(&names))
}

fn read_vlan(own: &Table, env: &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError> {
    let config = with_names(env.ports, |names| VlanConfig::read(own, names))?;
    let own = own.clone();
    Ok(updated(
        move |_| Ok(Vlan::new(config.clone())),
        move |stage: &mut Vlan, ports| {
            let now = with_names(ports, |names| VlanConfig::read(&own, names)).map_err(|e| e.to_string())?;
            stage.set_ports(now.ports);
            Ok(())
        },
    ))
}

/// What a bridge is told, with the VLANs of the stages around it; of its ports, those that are there.
fn bridge(own: &Table, vlans: Option<&Table>, ports: &PortNames) -> Result<L2SwitchConfig, KeyError> {
    let mut config = with_names(ports, |names| {
        let vlans = vlans.map(|table| VlanConfig::read(table, names)).transpose()?.map(|c| c.ports);
        L2SwitchConfig::read(own, names, vlans.as_ref())
    })?;
    let there = ports.numbers();
    config.ports.retain(|p| there.contains(p));
    config.isolated.retain(|p| there.contains(p));
    Ok(config)
}

fn read_l2switch(own: &Table, env: &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError> {
    let vlans = env.stages.iter().find(|s| s.kind == Vlan::KIND).map(|s| s.own.clone());
    bridge(own, vlans.as_ref(), env.ports)?;
    let own = own.clone();
    let (now, later) = ((own.clone(), vlans.clone()), (own, vlans));
    let family = Mutex::new(Peer::family(env.workers.max(1)).into_iter().map(Some).collect::<Vec<_>>());
    Ok(updated(
        move |env| {
            let config = bridge(&now.0, now.1.as_ref(), env.ports).map_err(|e| e.to_string())?;
            let peer = family
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_mut(env.place)
                .and_then(Option::take);
            let peer = peer.ok_or("it was built already for this worker")?;
            L2Switch::shared(&config, env.pool, hw::tsc_hz(), seed(), peer).map_err(|e| e.to_string())
        },
        move |stage: &mut L2Switch, ports| {
            let config = bridge(&later.0, later.1.as_ref(), ports).map_err(|e| e.to_string())?;
            stage.set_ports(&config.ports, &config.isolated).map_err(|e| e.to_string())?;
            config.vlans.map_or(Ok(()), |vlans| stage.set_vlans(vlans)).map_err(|e| e.to_string())
        },
    ))
}

fn read_filter(own: &Table, _: &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError> {
    let config = FilterConfig::read(own)?;
    let filter = Filter::new(&config.expression).map_err(|e| KeyError::new("expression", e.to_string()))?;
    Ok(plain(move |_| Ok(filter.clone())))
}

fn read_sample(own: &Table, _: &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError> {
    let config = SampleConfig::read(own)?;
    Ok(plain(move |env| Sample::new(&config, env.pool, seed()).map_err(|e| e.to_string())))
}

/// A number that nobody outside can know.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

fn read_drop(own: &Table, _: &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError> {
    let reason = match Keys::new(own, &["reason"])?.text("reason")? {
        None => DropReason::Filtered,
        Some(name) => name.parse().map_err(|e: String| KeyError::new("reason", e))?,
    };
    Ok(plain(move |_| Ok(Drop::new(reason))))
}
