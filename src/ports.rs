//! `ringwright ports`: what ports can be made of on this machine.

use std::fmt;

use ringwright::drivers;
use serde::Serialize;

/// What there is.
#[derive(Debug, Serialize)]
pub struct Ports {
    /// Of this object: fields are only ever added.
    schema: u32,
    /// Interfaces that `driver = "packet"` can be given.
    interfaces: Vec<Interface>,
    /// Drivers that need nothing of the machine, or make what they need.
    drivers: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct Interface {
    interface: String,
    driver: &'static str,
    mac: Option<String>,
    mtu: u32,
    up: bool,
    carrier: bool,
    kernel_driver: Option<String>,
}

impl Ports {
    /// Looks.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn list() -> Result<Self, String> {
        let all = drivers::packet::interfaces().map_err(|e| e.to_string())?;
        let ethernet = all.into_iter().filter_map(|i| {
            Some(Interface {
                mac: Some(wire::MacAddr::new(i.mac?).to_string()),
                interface: i.name,
                driver: "packet",
                mtu: i.mtu,
                up: i.up,
                carrier: i.running,
                kernel_driver: i.driver,
            })
        });
        let names: Vec<_> = drivers::all().iter().map(|d| d.name()).filter(|n| *n != "packet").collect();
        Ok(Self { schema: 1, interfaces: ethernet.collect(), drivers: names })
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<16} {:<18} {:>6}  {:<10} kernel driver", "interface", "address", "mtu", "link")?;
        for i in &self.interfaces {
            let link = match (i.up, i.carrier) {
                (false, _) => "off",
                (true, false) => "no carrier",
                (true, true) => "up",
            };
            let mac = i.mac.as_deref().unwrap_or("unknown");
            let kernel = i.kernel_driver.as_deref().unwrap_or("unknown");
            writeln!(f, "{:<16} {mac:<18} {:>6}  {link:<10} {kernel}", i.interface, i.mtu)?;
        }
        if self.interfaces.is_empty() {
            writeln!(f, "(none with Ethernet frames)")?;
        }
        write!(
            f,
            "\nuse one as driver = \"packet\", interface = \"NAME\"; there are also: {}",
            self.drivers.join(", ")
        )
    }
}
