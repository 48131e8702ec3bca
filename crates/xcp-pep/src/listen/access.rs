//! Whom the explicit listener answers, and where it goes for them. It connects as this machine:
//! what listens at the machine's own addresses trusts them, and packet filters between networks do
//! not see it. So these are nobody's to reach, unless the user says so.

use std::net::IpAddr;

/// Addresses that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

impl Network {
    /// The addresses whose first bits are this one's.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Self {
        Self { address, length }
    }

    /// Whether it is one of them.
    #[must_use]
    pub fn contains(&self, other: IpAddr) -> bool {
        fn alike(one: u128, other: u128, unused: u32) -> bool {
            // No bits in common is shifted by all of them.
            one.checked_shr(unused).unwrap_or(0) == other.checked_shr(unused).unwrap_or(0)
        }
        let length = u32::from(self.length);
        match (self.address, other) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                alike(one.to_bits().into(), other.to_bits().into(), 32u32.saturating_sub(length))
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                alike(one.to_bits(), other.to_bits(), 128u32.saturating_sub(length))
            }
            _ => false,
        }
    }
}

/// Who may ask for what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Who may ask; everybody where there are none.
    pub clients: Vec<Network>,
    /// What may be reached although it is this machine's or its link's.
    pub targets: Vec<Network>,
}

/// Addresses that mean this machine, a link of it, or many: no destination to be asked for. What
/// the kernel takes "no address" for is this machine.
fn is_special(address: IpAddr) -> bool {
    let common = address.is_loopback() || address.is_unspecified() || address.is_multicast();
    common
        || match address {
            IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast() || v4.octets()[0] == 0,
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        }
}

impl Access {
    /// Whether a client is answered.
    #[must_use]
    pub fn may_ask(&self, client: IpAddr) -> bool {
        let client = client.to_canonical();
        self.clients.is_empty() || self.clients.iter().any(|network| network.contains(client))
    }

    /// Whether a target is connected to; `is_ours`: whether an address is this machine's, asked
    /// only where that decides.
    #[must_use]
    pub fn may_reach(&self, target: IpAddr, is_ours: impl FnOnce(IpAddr) -> bool) -> bool {
        let target = target.to_canonical();
        self.targets.iter().any(|network| network.contains(target))
            || !is_special(target) && !is_ours(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn this_machine_is_nobodys_to_reach_unless_it_is_allowed() {
        let strict = Access::default();
        let specials = [
            "127.0.0.1",
            "127.8.9.1",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "255.255.255.255",
            "224.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:0.0.0.0",
        ];
        for special in specials {
            assert!(!strict.may_reach(ip(special), |_| false), "{special}");
        }
        for other in ["10.0.0.1", "192.0.2.1", "2001:db8::1", "fd00::1"] {
            assert!(strict.may_reach(ip(other), |_| false), "{other}");
            assert!(!strict.may_reach(ip(other), |_| true), "{other} is ours");
        }
        let allowed =
            Access { targets: vec![Network::new(ip("127.0.0.0"), 8)], ..Access::default() };
        assert!(
            allowed.may_reach(ip("127.0.0.1"), |_| true)
                && allowed.may_reach(ip("::ffff:127.0.0.1"), |_| true)
        );
        assert!(
            !allowed.may_reach(ip("::1"), |_| true) && !allowed.may_reach(ip("10.0.0.1"), |_| true)
        );
    }

    #[test]
    fn who_is_named_may_ask_and_nobody_else() {
        assert!(Access::default().may_ask(ip("192.0.2.1")), "nobody is named");
        let named = Access {
            clients: vec![Network::new(ip("10.1.0.0"), 16), Network::new(ip("::1"), 128)],
            ..Access::default()
        };
        for (client, may) in [
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("10.2.0.1", false),
            ("::1", true),
            ("::2", false),
        ] {
            assert_eq!(named.may_ask(ip(client)), may, "{client}");
        }
    }

    proptest! {
        #[test]
        fn a_network_is_its_first_bits(address in any::<u32>(), length in 0u8..=32, other in any::<u32>()) {
            let network = Network::new(IpAddr::V4(address.into()), length);
            let differs = (address ^ other).leading_zeros();
            prop_assert_eq!(network.contains(IpAddr::V4(other.into())), differs >= u32::from(length));
        }
    }
}
