//! Transactions summed by cause, and what the sum means for a link.

use std::time::Duration;

use crate::{AddressWidth, Bandwidth, Bus, Cause, Link, Operation, Parameters, PcieError, Source, Split};

/// What one cause, or all of them, put on the bus. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Reads and writes, as the one who counts sees them: before they are cut into TLPs.
    pub operations: u64,
    /// Those among them whose TLPs are an estimate ([`Parameters::estimate`]).
    pub estimated: u64,
    /// Payload bytes.
    pub bytes: u64,
    /// TLPs from device to host.
    pub upstream_tlps: u64,
    /// TLPs from host to device.
    pub downstream_tlps: u64,
    /// Bytes on the wire from device to host.
    pub upstream_bytes: u64,
    /// Bytes on the wire from host to device.
    pub downstream_bytes: u64,
}

impl Totals {
    /// TLPs both ways.
    pub const fn tlps(&self) -> u64 {
        self.upstream_tlps.saturating_add(self.downstream_tlps)
    }

    /// Bytes on the wire in one direction.
    pub const fn wire_bytes(&self, bus: Bus) -> u64 {
        match bus {
            Bus::Upstream => self.upstream_bytes,
            Bus::Downstream => self.downstream_bytes,
        }
    }

    /// The totals of `split`, whose requests go `requests`.
    const fn of(requests: Bus, split: Split) -> Self {
        let (request, completion) =
            ((split.requests, split.request_bytes), (split.completions, split.completion_bytes));
        let (up, down) = match requests {
            Bus::Upstream => (request, completion),
            Bus::Downstream => (completion, request),
        };
        Self {
            operations: 0,
            estimated: 0,
            bytes: 0,
            upstream_tlps: up.0,
            downstream_tlps: down.0,
            upstream_bytes: up.1,
            downstream_bytes: down.1,
        }
    }

    const fn add(&mut self, other: &Self) {
        self.operations = self.operations.saturating_add(other.operations);
        self.estimated = self.estimated.saturating_add(other.estimated);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.upstream_tlps = self.upstream_tlps.saturating_add(other.upstream_tlps);
        self.downstream_tlps = self.downstream_tlps.saturating_add(other.downstream_tlps);
        self.upstream_bytes = self.upstream_bytes.saturating_add(other.upstream_bytes);
        self.downstream_bytes = self.downstream_bytes.saturating_add(other.downstream_bytes);
    }
}

/// Transactions of one device or queue by cause, all counted by one source and cut by the same parameters.
///
/// ```
/// use std::time::Duration;
/// use ringwright_pcie::{AddressWidth, Cause, Link, Parameters, Source, Transactions};
/// let link: Link = "gen3x8".parse()?;
/// let mut seen = Transactions::new(Source::Device, Parameters::usual(link));
/// seen.estimate(Cause::PayloadWrite, AddressWidth::Bits32, 1_000_000, 60_000_000);
/// assert_eq!(seen.totals(Cause::PayloadWrite).upstream_bytes, 80_000_000);
/// let full = seen.ceiling(link, 1_000_000).expect("something was seen");
/// assert_eq!((full.packets_per_second / 1e6).round(), 97.0);
/// # Ok::<(), ringwright_pcie::PcieError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transactions {
    source: Source,
    parameters: Parameters,
    by_cause: [Totals; Cause::ALL.len()],
}

impl Transactions {
    /// None yet.
    pub fn new(source: Source, parameters: Parameters) -> Self {
        Self { source, parameters, by_cause: [Totals::default(); Cause::ALL.len()] }
    }

    /// Who counts.
    pub const fn source(&self) -> Source {
        self.source
    }

    /// What they are cut by.
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Adds one operation of `length` bytes at bus address `address`, with its exact TLPs.
    pub fn record(&mut self, cause: Cause, address: u64, length: u32) {
        let split = match cause.operation() {
            Operation::Read => self.parameters.read(address, length),
            Operation::Write => self.parameters.write(address, length),
        };
        self.add(
            cause,
            Totals { operations: 1, bytes: length.into(), ..Totals::of(cause.requests(), split) },
        );
    }

    /// Adds `operations` operations of `bytes` bytes in all, whose TLPs are an estimate: see [`Parameters::estimate`]
    /// for how and how wrong.
    pub fn estimate(&mut self, cause: Cause, width: AddressWidth, operations: u64, bytes: u64) {
        let split = self.parameters.estimate(cause.operation(), width, operations, bytes);
        let wire = Totals::of(cause.requests(), split);
        self.add(cause, Totals { operations, estimated: operations, bytes, ..wire });
    }

    fn add(&mut self, cause: Cause, totals: Totals) {
        self.by_cause[cause as usize].add(&totals);
    }

    /// Adds all of `other`: another queue of the same device. Refused if another source counted it, or if it was cut by
    /// other parameters.
    pub fn merge(&mut self, other: &Self) -> Result<(), PcieError> {
        if self.source != other.source {
            return Err(PcieError::Sources { ours: self.source, theirs: other.source });
        }
        if self.parameters != other.parameters {
            return Err(PcieError::Parameters);
        }
        for (cause, totals) in other.iter() {
            self.add(cause, *totals);
        }
        Ok(())
    }

    /// What `cause` put on the bus.
    pub const fn totals(&self, cause: Cause) -> &Totals {
        &self.by_cause[cause as usize]
    }

    /// All causes, those without transactions too.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, &Totals)> {
        Cause::ALL.into_iter().zip(&self.by_cause)
    }

    /// All causes together.
    pub fn total(&self) -> Totals {
        let mut total = Totals::default();
        self.by_cause.iter().for_each(|t| total.add(t));
        total
    }

    /// What `link` has for TLPs in one direction, by these parameters.
    fn bandwidth(&self, link: Link) -> Bandwidth {
        link.transaction_layer(self.parameters.max_payload, self.parameters.overhead)
    }

    /// How full `link` would have been with these transactions spread over `elapsed`; `None` if that is no time.
    pub fn utilization(&self, link: Link, elapsed: Duration) -> Option<Utilization> {
        let room = self.bandwidth(link).bytes_per_second() * elapsed.as_secs_f64();
        let total = self.total();
        let ratio = |bus| total.wire_bytes(bus) as f64 / room;
        (room > 0.0)
            .then(|| Utilization { upstream: ratio(Bus::Upstream), downstream: ratio(Bus::Downstream) })
    }

    /// The packet rate at which the busier direction of `link` would be full, if each packet costs what these
    /// transactions cost per packet; `packets` is how many packets they served. `None` without packets or bytes.
    pub fn ceiling(&self, link: Link, packets: u64) -> Option<Ceiling> {
        let total = self.total();
        let bus = match total.upstream_bytes >= total.downstream_bytes {
            true => Bus::Upstream,
            false => Bus::Downstream,
        };
        let bytes = total.wire_bytes(bus);
        (packets > 0 && bytes > 0).then(|| Ceiling {
            packets_per_second: self.bandwidth(link).bytes_per_second() * packets as f64 / bytes as f64,
            bus,
        })
    }
}

/// The share of a link's transaction-layer bandwidth that was used, per direction: 1 is full. More than 1 says that the
/// link could not have carried this; software devices can be faster than the link they are compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Utilization {
    /// From device to host.
    pub upstream: f64,
    /// From host to device.
    pub downstream: f64,
}

impl Utilization {
    /// The share of one direction.
    pub const fn of(&self, bus: Bus) -> f64 {
        match bus {
            Bus::Upstream => self.upstream,
            Bus::Downstream => self.downstream,
        }
    }

    /// The busier direction, and its share.
    pub const fn busier(&self) -> (Bus, f64) {
        if self.upstream >= self.downstream {
            (Bus::Upstream, self.upstream)
        } else {
            (Bus::Downstream, self.downstream)
        }
    }
}

/// Where the link becomes the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    /// Packets per second.
    pub packets_per_second: f64,
    /// The direction that is full then.
    pub bus: Bus,
}
