//! Page sizes, and what the machine has of them.

use core::fmt;
use std::fs;
use std::path::PathBuf;

use crate::Node;

/// A number of bytes, shown in the largest unit that fits.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
            let one = 1usize << shift;
            if self.0 >= one {
                return if self.0.is_multiple_of(one) {
                    write!(f, "{} {unit}", self.0 / one)
                } else {
                    write!(f, "{:.1} {unit}", self.0 as f64 / one as f64)
                };
            }
        }
        write!(f, "{} B", self.0)
    }
}

/// The pages that back an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSize {
    /// 1 GiB superpages.
    Huge1G,
    /// 2 MiB superpages.
    Huge2M,
    /// The base page.
    Base4K,
}

impl PageSize {
    /// Bytes in a page.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Huge1G => 1 << 30,
            Self::Huge2M => 2 << 20,
            Self::Base4K => 4 << 10,
        }
    }

    /// As in configuration and metrics: `1G`, `2M`, `4K`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Huge1G => "1G",
            Self::Huge2M => "2M",
            Self::Base4K => "4K",
        }
    }

    const fn kib(self) -> usize {
        self.bytes() >> 10
    }

    /// The directory with this size's counters, of the machine or of one node.
    fn sysfs(self, node: Option<Node>) -> PathBuf {
        let leaf = format!("hugepages-{}kB", self.kib());
        match node {
            Some(n) => format!("/sys/devices/system/node/node{}/hugepages/{leaf}", n.id()),
            None => format!("/sys/kernel/mm/hugepages/{leaf}"),
        }
        .into()
    }

    /// Whether the machine knows this page size.
    pub fn exists(self) -> bool {
        self == Self::Base4K || self.sysfs(None).is_dir()
    }

    /// Free and all pages of this size, on `node` or on the machine; `None` if the machine does not say.
    pub fn count(self, node: Option<Node>) -> Option<(usize, usize)> {
        let dir = self.sysfs(node);
        let read = |leaf: &str| fs::read_to_string(dir.join(leaf)).ok()?.trim().parse::<usize>().ok();
        Some((read("free_hugepages")?, read("nr_hugepages")?))
    }

    /// The command that gets `short` more pages than there are now.
    pub fn command(self, node: Option<Node>, short: usize) -> String {
        let have = self.count(node).map_or(0, |c| c.1);
        format!("echo {} | sudo tee {}", have + short, self.sysfs(node).join("nr_hugepages").display())
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytes(self.bytes()).fmt(f)
    }
}

/// Which pages are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// The largest that is there; 4 KiB last. The default.
    #[default]
    Any,
    /// These, or an error.
    Only(PageSize),
}

impl core::str::FromStr for Pages {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "any" => Ok(Self::Any),
            "1G" => Ok(Self::Only(PageSize::Huge1G)),
            "2M" => Ok(Self::Only(PageSize::Huge2M)),
            "4K" => Ok(Self::Only(PageSize::Base4K)),
            _ => Err(format!("pages = {s:?}: use \"1G\", \"2M\", \"4K\" or \"any\"")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_the_unit_that_fits() {
        let shown = [0, 1023, 1024, 1536, 512 << 20, 3 << 30].map(|n| Bytes(n).to_string());
        assert_eq!(shown, ["0 B", "1023 B", "1 KiB", "1.5 KiB", "512 MiB", "3 GiB"]);
    }

    #[test]
    fn page_names_are_read_back_and_others_are_explained() {
        for p in [PageSize::Huge1G, PageSize::Huge2M, PageSize::Base4K] {
            assert_eq!(p.name().parse(), Ok(Pages::Only(p)));
        }
        assert!("4M".parse::<Pages>().unwrap_err().contains("\"2M\""));
    }
}
