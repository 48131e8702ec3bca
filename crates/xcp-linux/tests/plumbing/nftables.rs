//! The packet filter's rules, however many there are.

use std::net::{IpAddr, Ipv4Addr};

use xcp_linux::netlink::nftables::{Chain, OwnedTable, Place, Term};

use crate::namespace;

/// More than the answers of which a socket's default buffer holds, and than one datagram of the
/// default size.
const MANY: u8 = 250;

fn chain(rules: Vec<Vec<Term>>) -> Chain {
    Chain { name: "c", place: Place::Prerouting, priority: -300, rules }
}

/// For each of many networks, what comes from there and what goes there.
fn many() -> Vec<Vec<Term>> {
    (0..MANY)
        .flat_map(|number| {
            let network = IpAddr::V4(Ipv4Addr::new(10, 0, number, 0));
            [Term::To(network, 24), Term::From(network, 24)]
                .map(|term| vec![Term::Tcp, term, Term::Accept])
        })
        .collect()
}

#[test]
fn many_rules_are_set_up_and_replaced_at_once() {
    let Some(here) = namespace("many rules") else { return };
    here.run(|| {
        let mut table = match OwnedTable::new("test", &[chain(Vec::new())]) {
            Ok(table) => table,
            Err(e) => return xcp_skip::skipped!("kernel", "many rules: {e}"),
        };
        table.replace(&chain(many())).unwrap();
        table.replace(&chain(Vec::new())).unwrap();
        drop(table);
        OwnedTable::new("test", &[chain(many())]).unwrap();
    })
    .unwrap();
}

/// However much is refused, the reason is the kernel's, and nothing is done.
#[test]
fn many_refusals_are_told_as_refusals() {
    let Some(here) = namespace("many refusals") else { return };
    here.run(|| {
        let mut table = match OwnedTable::new("test", &[chain(Vec::new())]) {
            Ok(table) => table,
            Err(e) => return xcp_skip::skipped!("kernel", "many refusals: {e}"),
        };
        // A rule has at most 128 expressions (NFT_RULE_MAXEXPRS).
        let long: Vec<Term> = (0..65).map(Term::Marked).collect();
        let error = table.replace(&chain(vec![long.clone(); MANY.into()])).unwrap_err();
        assert_eq!(error.errno(), Some(libc::EINVAL), "{error}");
        // One among many that are right: the table cannot be made.
        let mut rules = many();
        rules.insert(7, long);
        let error = OwnedTable::new("other", &[chain(rules)]).unwrap_err();
        assert_eq!(error.errno(), Some(libc::EINVAL), "{error}");
        OwnedTable::new("other", &[]).unwrap();
    })
    .unwrap();
}
