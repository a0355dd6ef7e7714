//! How a driver reaches its device.

use std::sync::Arc;

use crate::{Arena, Bar, DmaRegion, HwError, Node};

/// How a driver reaches its device. On metal: VFIO. In tests and in the demo: a model of the device.
///
/// A device reads and writes where its driver tells it to: an IOMMU, or a model's stand-in for one, confines it to what was
/// mapped, not to what the driver owns of it. Drivers are trusted to hand out addresses of rings and buffers only while
/// these are theirs.
pub trait Bus: Send + Sync {
    /// The register window `index`.
    ///
    /// # Errors
    /// [`HwError::NoBar`] if there is none.
    fn bar(&self, index: u8) -> Result<Bar, HwError>;

    /// Zeroed memory for a ring, on `node`, mapped for the device; it starts on a 4 KiB boundary.
    ///
    /// # Errors
    /// [`HwError::NoDma`] if there is no more.
    fn dma(&self, bytes: usize, node: Option<Node>) -> Result<DmaRegion, HwError>;

    /// Lets the device reach `arena` at its [`Arena::iova`]. The bus keeps the arena alive until [`Bus::unmap`].
    ///
    /// # Errors
    /// If the IOMMU says no.
    fn map(&self, arena: &Arc<Arena>) -> Result<(), HwError>;

    /// Ends what [`Bus::map`] began. Only after the device has been reset.
    fn unmap(&self, arena: &Arc<Arena>);

    /// Called again and again while waiting for the device: a short sleep on metal, a step in a stepped model.
    fn pause(&self);
}
