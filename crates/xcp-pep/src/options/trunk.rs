//! What the options of the trunk amount to.

use std::net::SocketAddr;
use std::path::Path;

use xcp_linux::{Error, Result};

use super::Options;
use super::value::{number, wrong};
use crate::trunk;

impl Options {
    /// How many connections the trunk keeps open.
    fn trunk_warm(&self) -> Result<usize> {
        number("trunk-warm", self.trunk_warm.unwrap_or(trunk::WARM), 1..=trunk::MOST_WARM)
    }

    /// The other gateway and the file with the secret, and the address of ours that it is to call,
    /// if that was said.
    ///
    /// # Errors
    /// They are none, do not go together, or lack the secret.
    pub fn trunk(&self) -> Result<Option<(SocketAddr, &Path, Option<SocketAddr>)>> {
        let read = |key: &str, text: &String| {
            trunk::address(text).ok_or_else(|| {
                wrong(
                    key,
                    format_args!("\"{text}\" is not an address like 192.0.2.1 or 192.0.2.1:4000"),
                )
            })
        };
        self.trunk_warm()?;
        let Some(peer) = &self.trunk else {
            let alone = self.trunk_listen.is_some()
                || self.trunk_warm.is_some()
                || self.trunk_encrypt == Some(true)
                || self.secret_file.is_some();
            return if alone {
                Err(Error::new(
                    "trunk-listen, trunk-warm, trunk-encrypt and secret-file need a trunk, but \
                    none is requested",
                )
                .remedy("give the other gateway: --trunk ADDRESS"))
            } else {
                Ok(None)
            };
        };
        let peer = read("trunk", peer)?;
        let own = self.trunk_listen.as_ref().map(|own| read("trunk-listen", own)).transpose()?;
        if self.wan.is_none() {
            return Err(Error::new("trunk: only diverted connections can use it")
                .remedy("give the devices: --wan DEV --lan DEV"));
        }
        if self.confirm == Some(true) {
            return Err(Error::new(
                "trunk: with confirm a client waits for its server's answer, \
                which takes the round trip that a trunk saves",
            )
            .remedy("leave out one of them"));
        }
        let Some(secret) = &self.secret_file else {
            return Err(Error::new(
                "trunk: the gateways recognise each other by a secret, but none is given",
            )
            .remedy("give a file with the same secret on both gateways: --secret-file FILE"));
        };
        if own.is_some_and(|own| own.is_ipv4() != peer.is_ipv4()) {
            return Err(wrong(
                "trunk-listen",
                "one address is IPv4, and the other gateway's is IPv6",
            ));
        }
        Ok(Some((peer, secret, own)))
    }

    /// The trunk, with what of it is found on this machine.
    ///
    /// # Errors
    /// As above; no secret; no way to the other gateway.
    pub fn trunk_plan(&self) -> Result<Option<trunk::Plan>> {
        let Some((peer, secret, own)) = self.trunk()? else { return Ok(None) };
        let secret = trunk::read_secret(secret)?;
        let listen = match own {
            Some(own) => own,
            None => {
                let address = trunk::own_address(peer).map_err(|e| {
                    Error::because(format_args!("trunk: no route to {}", peer.ip()), e).remedy(
                        "give the address at which the other gateway reaches this one: \
                         --trunk-listen ADDRESS",
                    )
                })?;
                SocketAddr::new(address, peer.port())
            }
        };
        let warm = self.trunk_warm()?;
        let encrypt = self.trunk_encrypt == Some(true);
        Ok(Some(trunk::Plan { peer, listen, warm, secret, encrypt }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_about_a_trunk_needs_one() {
        assert_eq!(Options::default().trunk().unwrap(), None);
        let (own, file) = (Some("192.0.2.1".to_owned()), Some("/secret".into()));
        for (key, options) in [
            ("trunk-listen", Options { trunk_listen: own, ..Options::default() }),
            ("trunk-warm", Options { trunk_warm: Some(8), ..Options::default() }),
            ("trunk-encrypt", Options { trunk_encrypt: Some(true), ..Options::default() }),
            ("secret-file", Options { secret_file: file, ..Options::default() }),
        ] {
            let refused = options.trunk().unwrap_err().to_string();
            assert!(refused.contains(key) && refused.contains("--trunk ADDRESS"), "{refused}");
        }
    }
}
