//! The smallest network function: frames come in on one port, their addresses are swapped, and they leave by the other.
//!
//! Runs without a NIC: both ports are `null` ports that make frames and throw away what is sent.
#![forbid(unsafe_code)]

use std::thread::sleep;
use std::time::Duration;

use ringwright::drivers::null::Null;
use ringwright::graph::{GraphBuilder, OnFull, To};
use ringwright::hw::{Pages, Window};
use ringwright::mem::{Layout, Memory};
use ringwright::port::{Driver, OpenEnv, PortConfig};
use ringwright::rt::{Runtime, WorkerPlan};
use ringwright::stages::{MacSwap, PortMap};
use ringwright::topology;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let core = *topology::cores().last().ok_or("no core to run on")?;
    let memory = Memory::new(Window::reserve(Window::LEN)?, Layout::for_frame_room(2048)?);
    memory.add_pool(8192, topology::node_of_core(core), Pages::Any)?;

    let driver = Null::new();
    let mut runtime = Runtime::new(memory);
    for name in ["left", "right"] {
        let env = OpenEnv { memory: runtime.memory().clone(), name: name.into() };
        let keys = "frames = \"udp\"\nflows = 16".parse()?;
        runtime.add_port(name, driver.open(&keys, &env)?, PortConfig::new(0), OnFull::Drop);
    }
    let swap = MacSwap::new(Some(PortMap::pairs(&[(0, 1)])?));
    runtime.start(vec![WorkerPlan {
        core: Some(core),
        rx: vec![(0, 0), (1, 0)],
        tx: vec![(0, 0), (1, 0)],
        stages: 1,
        graph: Some(Box::new(|local| {
            let mut graph = GraphBuilder::new(local);
            let swap = graph.add("swap", Box::new(swap));
            graph.build(To::Node(swap))
        })),
        ..WorkerPlan::default()
    }])?;

    sleep(Duration::from_secs(1));
    let status = runtime.stop();
    for port in &status.ports {
        println!("{}: {} received, {} sent", port.name, port.rx.packets, port.tx.packets);
    }
    println!("{:?}", status.conservation);
    Ok(())
}
