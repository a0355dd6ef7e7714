//! PCI identities (82599 9.3.2; X540 data sheet 9.3.2).

/// Intel.
pub const VENDOR: u16 = 0x8086;

/// Which controller an identity stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Controller {
    /// 82599.
    I82599,
    /// X540: the same programming model with a copper PHY of its own.
    X540,
}

/// A PCI device identity that these layouts describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// PCI device number.
    pub device: u16,
    /// The controller.
    pub controller: Controller,
    /// The board variant.
    pub variant: &'static str,
}

const fn id(device: u16, controller: Controller, variant: &'static str) -> Identity {
    Identity { device, controller, variant }
}

/// Physical functions, by device number.
pub const IDENTITIES: [Identity; 16] = [
    id(0x10F7, Controller::I82599, "KX4"),
    id(0x10F8, Controller::I82599, "combo backplane"),
    id(0x10F9, Controller::I82599, "CX4"),
    id(0x10FB, Controller::I82599, "SFI/SFP+"),
    id(0x10FC, Controller::I82599, "XAUI"),
    id(0x1507, Controller::I82599, "SFP+ EM"),
    id(0x1514, Controller::I82599, "KX4 mezzanine"),
    id(0x1517, Controller::I82599, "KR"),
    id(0x151C, Controller::I82599, "10GBASE-T"),
    id(0x1528, Controller::X540, "10GBASE-T"),
    id(0x1529, Controller::I82599, "SFP+ FCoE"),
    id(0x152A, Controller::I82599, "backplane FCoE"),
    id(0x154A, Controller::I82599, "quad SFP+"),
    id(0x154D, Controller::I82599, "SFP+ SF2"),
    id(0x1557, Controller::I82599, "82599EN SFP+"),
    id(0x1560, Controller::X540, "10GBASE-T, one port"),
];

/// What `device` of vendor [`VENDOR`] is, if it is described here.
pub fn identify(device: u16) -> Option<Identity> {
    IDENTITIES.iter().copied().find(|i| i.device == device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_sorted_and_found() {
        assert!(IDENTITIES.is_sorted_by(|a, b| a.device < b.device));
        assert_eq!(identify(0x10FB).map(|i| i.controller), Some(Controller::I82599));
        assert_eq!(identify(0x1528).map(|i| i.controller), Some(Controller::X540));
        assert_eq!(identify(0x10ED), None, "a virtual function is another device");
    }
}
