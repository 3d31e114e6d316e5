//! [`Peer`]: the other end of a connection.

use std::net::{IpAddr, Ipv6Addr};

use rustls::pki_types::CertificateDer;

/// The other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where it is.
    pub network: Network,
    /// The certificates that it shows, its own first. The handshake has proved that it has the key of that one, and nothing else.
    pub certificates: Vec<CertificateDer<'static>>,
}

impl Peer {
    /// Somebody at this address who shows no certificate.
    pub fn at(address: IpAddr) -> Self {
        Self { network: Network::of(address), certificates: Vec::new() }
    }
}

/// What an address stands for: itself, or with IPv6 the network of 64 bits that its owner has all addresses of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network(IpAddr);

impl Network {
    /// The network of an address.
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address => address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_many_addresses_of_one_network_is_one() {
        let network = |address: &str| Network::of(address.parse().unwrap());
        assert_eq!(network("2001:db8:0:1::1"), network("2001:db8:0:1:ffff::2"));
        assert_ne!(network("2001:db8:0:1::1"), network("2001:db8:0:2::1"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }
}
