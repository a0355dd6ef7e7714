//! Exits lead somewhere, forward, or the graph is refused with a text that says what to do.

mod rig;

use graph::{Exit, ExitInfo, Exits, GraphBuilder, Leads, Stage, To};
use mem::Batch;
use meter::DropReason;
use rig::Rig;
use ringwright_graph as graph;

#[derive(Clone, Copy)]
struct Only(u8);
impl From<Only> for u8 {
    fn from(e: Only) -> Self {
        e.0
    }
}
impl Exit for Only {
    const EXITS: &'static [ExitInfo] = &[
        ExitInfo { name: "out", leads: Leads::Open },
        ExitInfo { name: "bad", leads: Leads::Drop(DropReason::BadLength) },
        ExitInfo { name: "back", leads: Leads::Marked },
    ];
}

struct Plain;
impl Stage for Plain {
    type Exit = Only;
    const KIND: &'static str = "plain";
    fn process(&mut self, _: &mut Batch, exits: &mut Exits<'_, Only>) {
        exits.set_all(Only(0));
    }
}

#[test]
fn an_exit_that_leads_nowhere_is_refused_and_those_with_an_end_are_not() {
    let rig = Rig::new(64);
    let mut b = GraphBuilder::new(&rig.local);
    let a = b.add("first", Box::new(Plain));
    let e = b.build(To::Node(a)).err().unwrap();
    assert_eq!(
        e.to_string(),
        "exit \"out\" of stage \"first\" leads nowhere: join it to a stage, to \"tx\", or to \"drop:REASON\""
    );
    let mut b = GraphBuilder::new(&rig.local);
    let a = b.add("first", Box::new(Plain));
    b.join(a, "out", To::Drop(DropReason::Policed)).unwrap();
    assert!(b.build(To::Node(a)).is_ok(), "one join is enough: the other exits have an end of their own");
}

#[test]
fn edges_go_forward_only() {
    let rig = Rig::new(64);
    let mut b = GraphBuilder::new(&rig.local);
    let first = b.add("first", Box::new(Plain));
    let second = b.add("second", Box::new(Plain));
    let e = b.join(second, "out", To::Node(first)).unwrap_err();
    assert_eq!(
        e.to_string(),
        "an edge from stage \"second\" back to \"first\": edges go forward only; order the stages by the packet's way"
    );
    assert!(b.join(first, "out", To::Node(first)).is_err(), "to itself");
    assert!(b.join(first, "out", To::Node(second)).is_ok());
}

#[test]
fn an_exit_that_is_not_there_is_refused_with_those_that_are() {
    let rig = Rig::new(64);
    let mut b = GraphBuilder::new(&rig.local);
    let a = b.add("first", Box::new(Plain));
    let e = b.join(a, "copy", To::Tx(0)).unwrap_err();
    assert_eq!(e.to_string(), "stage \"first\" has no exit \"copy\": it has out, bad, back");
}

#[test]
fn a_stage_is_reached_by_name_and_kind() {
    struct Other;
    impl Stage for Other {
        type Exit = Only;
        const KIND: &'static str = "other";
        fn process(&mut self, _: &mut Batch, _: &mut Exits<'_, Only>) {}
    }
    let rig = Rig::new(64);
    let mut b = GraphBuilder::new(&rig.local);
    let a = b.add("first", Box::new(Plain));
    b.join(a, "out", To::Tx(0)).unwrap();
    let mut g = b.build(To::Node(a)).unwrap();
    assert!(g.stage_mut::<Plain>("first").is_some());
    assert!(g.stage_mut::<Other>("first").is_none() && g.stage_mut::<Plain>("second").is_none());
    rig.finish(g);
}
