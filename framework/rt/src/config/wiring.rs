//! The graph that a configuration describes.

use std::sync::Arc;

use config::{KeyError, Keys, suggest};
use graph::{AnyStage, ExitInfo, Graph, GraphBuilder, GraphError, Leads, NodeId, To};
use mem::{Local, PoolId};
use meter::DropReason;
use toml::Table;

use super::entry::{ByPort, MOST};
use super::{Config, ConfigError, Kinds, PortNames, Problem, StageSection};
use crate::Role;

/// A kind of stage that a configuration can name.
pub trait StageKind: Send + Sync {
    /// As in configuration: `l2switch`.
    fn kind(&self) -> &'static str;
    /// Its own keys.
    fn keys(&self) -> &'static [&'static str];
    /// Reads its keys, of which all names are known.
    ///
    /// # Errors
    /// The key that is wrong.
    fn read(&self, own: &Table, env: &StageEnv<'_>) -> Result<Arc<dyn Recipe>, KeyError>;
}

/// What a stage may ask when it is read.
#[derive(Clone, Copy, Debug)]
pub struct StageEnv<'a> {
    /// Its name.
    pub name: &'a str,
    /// The ports.
    pub ports: &'a PortNames,
    /// Workers that will run it, each its own.
    pub workers: usize,
    /// All stages: some are told together.
    pub stages: &'a [StageSection],
}

/// Makes one stage for each worker that runs it.
pub trait Recipe: Send + Sync {
    /// Its exits; the first is where a straight line goes on.
    fn exits(&self) -> &'static [ExitInfo];
    /// The stage of one worker.
    ///
    /// # Errors
    /// What cannot be.
    fn build(&self, env: &BuildEnv<'_>) -> Result<Box<dyn AnyStage>, String>;
    /// Tells stage `name` of a running graph that there are other `ports` now.
    ///
    /// # Errors
    /// What cannot be; the stage goes on as before.
    fn set_ports(&self, _graph: &mut Graph, _name: &str, _ports: &PortNames) -> Result<(), String> {
        Ok(())
    }
}

/// What a stage is built with, on its worker's own thread.
#[derive(Clone, Copy)]
pub struct BuildEnv<'a> {
    /// The worker's way to packet memory.
    pub local: &'a Local,
    /// Where copies come from.
    pub pool: PoolId,
    /// The worker's place among those that run the stage, from 0.
    pub place: usize,
    /// The ports.
    pub ports: &'a PortNames,
}

/// Where an exit leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// A node, by its place.
    Node(usize),
    Tx(u16),
    Marked,
    Drop(DropReason),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    /// The stage's place in the configuration.
    stage: usize,
    /// The worker's place among those that run the stage.
    place: usize,
    joins: Vec<(&'static str, Goal)>,
}

/// One worker's graph: stages in an order in which edges go forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wiring {
    nodes: Vec<Node>,
    /// Where received packets go, by port; all others to `rest`.
    by_port: Vec<(u16, Goal)>,
    rest: Option<Goal>,
}

/// What is needed to wire.
struct Wirer<'c> {
    config: &'c Config,
    names: PortNames,
    recipes: &'c [Arc<dyn Recipe>],
}

type Wired<T> = Result<T, Vec<Problem>>;

impl Config {
    /// Reads the keys of all stages.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn recipes(&self, kinds: Kinds<'_>) -> Result<Vec<Arc<dyn Recipe>>, ConfigError> {
        let names = self.names();
        let (mut recipes, mut problems) = (Vec::new(), Vec::new());
        for (i, s) in self.stages.iter().enumerate() {
            let Some(kind) = kinds.stage(&s.kind) else { continue };
            let runs = |w: &&super::WorkerSection| match &w.stages {
                Some(list) => list.iter().any(|n| **n == *s.name),
                None => matches!(w.role, Role::RunToCompletion | Role::Process),
            };
            let workers = self.workers.iter().filter(runs).count();
            let env = StageEnv { name: &s.name, ports: &names, workers, stages: &self.stages };
            match Keys::new(&s.own, kind.keys()).and_then(|_| kind.read(&s.own, &env)) {
                Ok(recipe) => recipes.push(recipe),
                Err(e) => problems.push(self.text.problem(&format!("stage[{i}].{}", e.key), e.to_string())),
            }
        }
        if problems.is_empty() { Ok(recipes) } else { Err(self.text.error(problems)) }
    }

    /// The graph of each worker; `None` for those that run no stages.
    ///
    /// # Errors
    /// Edges that lead nowhere, back, or from what is not there; exits without an edge; stages that nothing leads to.
    pub fn wire(&self, recipes: &[Arc<dyn Recipe>]) -> Result<Vec<Option<Wiring>>, ConfigError> {
        let w = Wirer { config: self, names: self.names(), recipes };
        let (mut all, mut problems) = (Vec::new(), Vec::new());
        let mut places = vec![0; self.stages.len()];
        for i in 0..self.workers.len() {
            match w.worker(i) {
                Ok(mut wiring) => {
                    for node in wiring.iter_mut().flat_map(|w| &mut w.nodes) {
                        node.place = places[node.stage];
                        places[node.stage] += 1;
                    }
                    all.push(wiring);
                }
                Err(p) => problems.extend(p),
            }
        }
        problems.dedup();
        if problems.is_empty() { Ok(all) } else { Err(self.text.error(problems)) }
    }
}

impl Wirer<'_> {
    fn problem<T>(&self, path: &str, message: impl Into<String>) -> Wired<T> {
        Err(vec![self.config.text.problem(path, message)])
    }

    fn worker(&self, i: usize) -> Wired<Option<Wiring>> {
        let worker = &self.config.workers[i];
        if matches!(worker.role, Role::Rx | Role::Tx) {
            return Ok(None);
        }
        if let Some(list) = &worker.stages {
            let find = |(j, name): (usize, &String)| {
                self.stage(name)
                    .map_err(|m| vec![self.config.text.problem(&format!("worker[{i}].stages[{j}]"), m)])
            };
            let line = list.iter().enumerate().map(find).collect::<Wired<Vec<_>>>()?;
            return self.line(&line, &format!("worker[{i}].stages")).map(Some);
        }
        match (self.config.stages.len(), self.config.edges.is_empty()) {
            (0, true) => self.problem(
                &format!("worker[{i}]"),
                "there is no stage: write [[stage]] with name and kind, as l2switch or forward",
            ),
            (1, true) => self.line(&[0], "stage[0]").map(Some),
            (_, true) => self.problem(
                "stage[1]",
                "several stages need [[edge]]s, or stages = [...] on the worker for a straight line",
            ),
            (_, false) => self.edges().map(Some),
        }
    }

    fn stage(&self, name: &str) -> Result<usize, String> {
        let stages = &self.config.stages;
        stages.iter().position(|s| &*s.name == name).ok_or_else(|| {
            match suggest(name, stages.iter().map(|s| &*s.name)) {
                Some(near) => format!("there is no stage {name:?}; did you mean {near:?}?"),
                None => format!("there is no stage {name:?}"),
            }
        })
    }

    /// Stages one after the other, by their first exits, to `tx`.
    fn line(&self, stages: &[usize], path: &str) -> Wired<Wiring> {
        if stages.is_empty() || stages.iter().enumerate().any(|(i, s)| stages[..i].contains(s)) {
            return self.problem(path, "a straight line has each stage once, and at least one");
        }
        let mut nodes = Vec::new();
        for (i, &stage) in stages.iter().enumerate() {
            let first = self.recipes[stage].exits().first().filter(|e| !matches!(e.leads, Leads::Drop(_)));
            let goal = if i + 1 < stages.len() { Goal::Node(i + 1) } else { Goal::Marked };
            nodes.push(Node { stage, place: 0, joins: first.map(|e| (e.name, goal)).into_iter().collect() });
        }
        let wiring = Wiring { nodes, by_port: Vec::new(), rest: Some(Goal::Node(0)) };
        self.complete(wiring)
    }

    /// Every exit leads somewhere.
    fn complete(&self, wiring: Wiring) -> Wired<Wiring> {
        let mut problems = Vec::new();
        for n in &wiring.nodes {
            let name = &self.config.stages[n.stage].name;
            for e in self.recipes[n.stage].exits() {
                if e.leads == Leads::Open && !n.joins.iter().any(|j| j.0 == e.name) {
                    let message = format!(
                        "exit {0:?} of stage {name:?} leads nowhere: write an [[edge]] from = \"{name}:{0}\" to a stage, \"tx\" or \"drop:REASON\"",
                        e.name
                    );
                    problems.push(self.config.text.problem(&format!("stage[{}].name", n.stage), message));
                }
            }
        }
        if problems.is_empty() { Ok(wiring) } else { Err(problems) }
    }

    /// Stages as the edges join them.
    fn edges(&self) -> Wired<Wiring> {
        let stages = self.config.stages.len();
        let mut joins: Vec<Vec<(&'static str, Goal, usize)>> = vec![Vec::new(); stages];
        let (mut by_port, mut rest) = (Vec::new(), None);
        let mut problems = Vec::new();
        for (i, edge) in self.config.edges.iter().enumerate() {
            let path = |key: &str| format!("edge[{i}].{key}");
            let goal = self.goal(&edge.to).map_err(|m| self.config.text.problem(&path("to"), m));
            let joined = goal.and_then(|goal| {
                let from = self.from(&edge.from).and_then(|from| match from {
                    From::All if rest.replace(goal).is_some() => {
                        Err("there are two edges from \"rx\"".to_owned())
                    }
                    From::All => Ok(()),
                    From::Port(p) if by_port.iter().any(|(q, _)| *q == p) => {
                        Err(format!("there are two edges from {:?}", edge.from))
                    }
                    From::Port(_) if by_port.len() == MOST => {
                        Err(format!("at most {MOST} edges start at a port"))
                    }
                    From::Port(p) => {
                        by_port.push((p, goal));
                        Ok(())
                    }
                    From::Exit(s, e) if joins[s].iter().any(|j| j.0 == e) => {
                        Err(format!("there are two edges from exit {e:?} of this stage"))
                    }
                    From::Exit(s, e) => {
                        joins[s].push((e, goal, i));
                        Ok(())
                    }
                });
                from.map_err(|m| self.config.text.problem(&path("from"), m))
            });
            problems.extend(joined.err());
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        self.received(&by_port, rest)?;
        let order = self.order(&joins, by_port.iter().map(|b| b.1).chain(rest))?;
        let place = |goal: Goal| match goal {
            Goal::Node(s) => Goal::Node(order.iter().position(|&o| o == s).unwrap_or(usize::MAX)),
            other => other,
        };
        let node = |&stage: &usize| Node {
            stage,
            place: 0,
            joins: joins[stage].iter().map(|j| (j.0, place(j.1))).collect(),
        };
        let nodes = order.iter().map(node).collect();
        let by_port = by_port.iter().map(|&(p, g)| (p, place(g))).collect();
        self.complete(Wiring { nodes, by_port, rest: rest.map(place) })
    }

    /// Every port that packets come from has an edge.
    fn received(&self, by_port: &[(u16, Goal)], rest: Option<Goal>) -> Wired<()> {
        let received = self.config.workers.iter().flat_map(|w| &w.rx).map(|q| q.port);
        for port in received {
            if rest.is_none() && !by_port.iter().any(|(p, _)| *p == port) {
                let name = self.names.name(port).map_or("", |n| n);
                return self.problem(
                    "edge[0]",
                    format!("no edge starts at \"rx:{name}\", nor at \"rx\": say where its packets go"),
                );
            }
        }
        Ok(())
    }

    /// Stages in an order in which all edges go forward; every one is reached.
    fn order(
        &self,
        joins: &[Vec<(&'static str, Goal, usize)>],
        starts: impl Iterator<Item = Goal>,
    ) -> Wired<Vec<usize>> {
        let targets = |s: usize| {
            joins[s].iter().filter_map(|j| if let Goal::Node(t) = j.1 { Some((t, j.2)) } else { None })
        };
        let mut reached = vec![false; joins.len()];
        let mut ahead: Vec<usize> =
            starts.filter_map(|g| if let Goal::Node(s) = g { Some(s) } else { None }).collect();
        while let Some(s) = ahead.pop() {
            if !core::mem::replace(&mut reached[s], true) {
                ahead.extend(targets(s).map(|t| t.0));
            }
        }
        if let Some(s) = reached.iter().position(|r| !r) {
            let name = &self.config.stages[s].name;
            return self.problem(&format!("stage[{s}].name"), format!("no edge leads to stage {name:?}"));
        }
        let mut before = vec![0; joins.len()];
        (0..joins.len()).for_each(|s| targets(s).for_each(|(t, _)| before[t] += 1));
        let mut order = Vec::new();
        while let Some(s) = (0..joins.len()).find(|s| before[*s] == 0 && !order.contains(s)) {
            order.push(s);
            targets(s).for_each(|(t, _)| before[t] -= 1);
        }
        let stuck = |s: &usize| !order.contains(s);
        match (0..joins.len()).filter(stuck).find_map(|s| targets(s).find(|(t, _)| stuck(t))) {
            None => Ok(order),
            Some((_, edge)) => self.problem(
                &format!("edge[{edge}].to"),
                "this edge leads back to where its packets came from: edges go forward only",
            ),
        }
    }

    fn from(&self, from: &str) -> Result<From, String> {
        let (name, exit) = from.split_once(':').map_or((from, None), |(n, e)| (n, Some(e)));
        if name == "rx" {
            let Some(port) = exit else { return Ok(From::All) };
            return self.names.number(port).map(From::Port).ok_or_else(|| self.names.no_such(port));
        }
        let stage = self.stage(name)?;
        let exits = self.recipes[stage].exits();
        let Some(exit) = exit else {
            return exits
                .first()
                .map(|e| From::Exit(stage, e.name))
                .ok_or_else(|| format!("stage {name:?} has no exits"));
        };
        let there = || exits.iter().map(|e| e.name).collect::<Vec<_>>().join(", ");
        exits
            .iter()
            .find(|e| e.name == exit)
            .map(|e| From::Exit(stage, e.name))
            .ok_or_else(|| format!("stage {name:?} has no exit {exit:?}; it has {}", there()))
    }

    fn goal(&self, to: &str) -> Result<Goal, String> {
        match to.split_once(':') {
            Some(("tx", port)) => {
                self.names.number(port).map(Goal::Tx).ok_or_else(|| self.names.no_such(port))
            }
            Some(("drop", reason)) => reason.parse().map(Goal::Drop),
            Some(_) => Err(format!("{to:?} is not a stage, tx, tx:PORT or drop:REASON")),
            None if to == "tx" => Ok(Goal::Marked),
            None => self.stage(to).map(Goal::Node),
        }
    }
}

/// Where an edge starts.
enum From {
    All,
    Port(u16),
    Exit(usize, &'static str),
}

impl Wiring {
    /// Stages in it.
    pub fn stages(&self) -> usize {
        self.nodes.len() + usize::from(!self.by_port.is_empty())
    }

    /// The stages' places in the configuration.
    pub fn stage_places(&self) -> impl Iterator<Item = usize> {
        self.nodes.iter().map(|n| n.stage)
    }

    /// Builds the graph. `stages` names each stage of the configuration and makes it; places in `env` do not matter.
    ///
    /// # Errors
    /// A stage that cannot be built.
    pub fn build(
        &self,
        stages: &[(Arc<str>, Arc<dyn Recipe>)],
        env: &BuildEnv<'_>,
    ) -> Result<Graph, GraphError> {
        let mut b = GraphBuilder::new(env.local);
        let split = !self.by_port.is_empty();
        let ports: Vec<u16> = self.by_port.iter().map(|p| p.0).collect();
        let entry = split.then(|| b.add("by_port", Box::new(ByPort::new(&ports))));
        let mut ids: Vec<NodeId> = Vec::new();
        for node in &self.nodes {
            let (name, recipe) = &stages[node.stage];
            let failed = |problem| GraphError::Stage { stage: Arc::clone(name), problem };
            let env = BuildEnv { place: node.place, ..*env };
            ids.push(b.add(name, recipe.build(&env).map_err(failed)?));
        }
        let to = |goal: Goal| match goal {
            Goal::Node(i) => To::Node(ids[i]),
            Goal::Tx(port) => To::Tx(port),
            Goal::Marked => To::Marked,
            Goal::Drop(reason) => To::Drop(reason),
        };
        for (node, &id) in self.nodes.iter().zip(&ids) {
            node.joins.iter().try_for_each(|&(exit, goal)| b.join(id, exit, to(goal)))?;
        }
        let rest = self.rest.map_or(To::Drop(DropReason::NoRoute), to);
        let Some(entry) = entry else { return b.build(rest) };
        for (i, &(_, goal)) in self.by_port.iter().enumerate() {
            b.join(entry, &i.to_string(), to(goal))?;
        }
        b.join(entry, "rest", rest)?;
        b.build(To::Node(entry))
    }
}
