//! Stages, the graph that joins them, and the breath that moves packets through it.
//!
//! - [`Stage`] looks at a batch and sets one [`Exit`] per packet; it never moves a packet.
//! - [`GraphBuilder`] joins exits to stages, transmit queues, or a drop *with a reason*.
//! - [`Graph`] owns a worker's stages and queues; [`Graph::breathe`] is one round: pull, work, push, reap.
//!
//! Life of a graph:
//! 1. Stages are added, exits joined. Edges go forward only, so there are no circles.
//! 2. [`GraphBuilder::build`] refuses an exit that leads nowhere.
//! 3. Queues are added, and taken away again, between two breaths.
//! 4. The worker breathes until it is told to stop, then takes the queues out and drops the graph.
//!
//! A packet leaves a graph by a transmit queue, by a stage that says it consumed it, or by a reason:
//!
//! ```compile_fail,E0618
//! let nowhere = ringwright_graph::To::Drop;
//! let to: ringwright_graph::To = nowhere();
//! ```
//! ```compile_fail,E0308
//! let to: ringwright_graph::To = ringwright_graph::To::Drop;
//! ```
//!
//! Limits: one graph per worker; a stage has at most 255 exits.
#![forbid(unsafe_code)]

mod breath;
mod lanes;
mod stage;

use std::sync::Arc;

use mem::{Batch, Local};
use meter::{DropReason, StageMeter};

pub use breath::{Breath, Graph};
pub use lanes::{OnFull, RxLane, TxLane};
use stage::Made;
pub use stage::{AnyStage, Exit, ExitInfo, Exits, Leads, Stage};

/// A stage of a graph, by number. Edges lead only to higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(usize);

/// Where an exit leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Another stage, added later.
    Node(NodeId),
    /// The transmit queue of a port.
    Tx(u16),
    /// The transmit queue of the port that each packet is marked for.
    Marked,
    /// Dropped, and counted.
    Drop(DropReason),
}

/// Wiring errors.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// An edge to the same or an earlier stage.
    #[error(
        "an edge from stage {from:?} back to {to:?}: edges go forward only; order the stages by the packet's way"
    )]
    Circle {
        /// From.
        from: Arc<str>,
        /// To.
        to: Arc<str>,
    },
    /// No such exit.
    #[error("stage {stage:?} has no exit {exit:?}: it has {there}")]
    NoExit {
        /// The stage.
        stage: Arc<str>,
        /// The exit asked for.
        exit: String,
        /// The exits there are.
        there: String,
    },
    /// A stage's own keys.
    #[error("stage {stage:?}: {problem}")]
    Stage {
        /// The stage.
        stage: Arc<str>,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// An exit that leads nowhere.
    #[error(
        "exit {exit:?} of stage {stage:?} leads nowhere: join it to a stage, to \"tx\", or to \"drop:REASON\""
    )]
    Loose {
        /// The stage.
        stage: Arc<str>,
        /// The exit.
        exit: &'static str,
    },
}

pub(crate) struct Entry {
    pub stage: Box<dyn AnyStage>,
    pub name: Arc<str>,
    pub inbox: Batch,
    pub outs: Vec<Batch>,
    pub edges: Vec<To>,
    pub made: Made,
    pub meter: StageMeter,
    pub published: Option<Arc<meter::Published<StageMeter>>>,
}

/// A graph under construction.
pub struct GraphBuilder {
    local: Local,
    nodes: Vec<(Entry, Vec<bool>)>,
}

impl GraphBuilder {
    /// No stages yet.
    pub fn new(local: &Local) -> Self {
        Self { local: local.clone(), nodes: Vec::new() }
    }

    /// Adds a stage. Exits that have a reason or a mark of their own are joined to it already.
    pub fn add(&mut self, name: &str, stage: Box<dyn AnyStage>) -> NodeId {
        let exits = stage.exits();
        let edges = exits.iter().map(|e| match e.leads {
            Leads::Drop(r) => (To::Drop(r), true),
            Leads::Marked => (To::Marked, true),
            Leads::Open => (To::Marked, false),
        });
        let (edges, joined) = edges.unzip();
        let outs = exits.iter().map(|_| Batch::new(&self.local)).collect();
        let entry = Entry {
            stage,
            name: name.into(),
            inbox: Batch::new(&self.local),
            outs,
            edges,
            made: Made::default(),
            meter: StageMeter::default(),
            published: None,
        };
        self.nodes.push((entry, joined));
        NodeId(self.nodes.len() - 1)
    }

    /// Joins `exit` of stage `from` to `to`.
    ///
    /// # Errors
    /// [`GraphError::Circle`], [`GraphError::NoExit`].
    pub fn join(&mut self, from: NodeId, exit: &str, to: To) -> Result<(), GraphError> {
        if let To::Node(t) = to
            && t <= from
        {
            let name = |n: NodeId| Arc::clone(&self.nodes[n.0].0.name);
            return Err(GraphError::Circle { from: name(from), to: name(t) });
        }
        let (entry, joined) = &mut self.nodes[from.0];
        let exits = entry.stage.exits();
        let i = exits.iter().position(|e| e.name == exit).ok_or_else(|| GraphError::NoExit {
            stage: Arc::clone(&entry.name),
            exit: exit.to_owned(),
            there: exits.iter().map(|e| e.name).collect::<Vec<_>>().join(", "),
        })?;
        entry.edges[i] = to;
        joined[i] = true;
        Ok(())
    }

    /// The finished graph; received packets go to `source`.
    ///
    /// # Errors
    /// [`GraphError::Loose`] if an exit leads nowhere.
    pub fn build(self, source: To) -> Result<Graph, GraphError> {
        for (entry, joined) in &self.nodes {
            if let Some(i) = joined.iter().position(|j| !j) {
                let exit = entry.stage.exits()[i].name;
                return Err(GraphError::Loose { stage: Arc::clone(&entry.name), exit });
            }
        }
        Ok(Graph::new(&self.local, self.nodes.into_iter().map(|n| n.0).collect(), source))
    }
}
