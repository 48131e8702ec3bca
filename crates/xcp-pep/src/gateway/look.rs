//! Looking before anything is done: what a gateway's proxy would find in its way, and what the user
//! should know of. `pep check` tells all of it; `pep up` refuses what is in the way, and warns.

use serde::Serialize;
use xcp_linux::namespace::{Called, Namespace};
use xcp_linux::netlink::{Device, Netlink, tables};
use xcp_linux::offload::{self, Offload};
use xcp_linux::{Error, Result, sysctl};

use super::owner::{self, owners};
use super::slot::Slot;
use super::wan;
use crate::options::Options;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is as it should be.
    Ok,
    /// The proxy works; something the user may expect does not.
    Warning,
    /// The proxy cannot be, or connections would hang.
    InTheWay,
}

/// Something that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// For scripts; never changed.
    pub name: &'static str,
    /// How bad it is.
    pub standing: Standing,
    /// What was found on this machine.
    pub found: String,
    /// What to do, where something is to be done.
    pub remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, standing: Standing::Ok, found: found.into(), remedy: None }
    }

    pub(super) fn warning(
        name: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { name, standing: Standing::Warning, found: found.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn in_the_way(
        name: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            name,
            standing: Standing::InTheWay,
            found: found.into(),
            remedy: Some(remedy.into()),
        }
    }

    /// The finding as an error with its remedy.
    #[must_use]
    pub fn error(&self) -> Error {
        let error = Error::new(&*self.found);
        match &self.remedy {
            Some(remedy) => error.remedy(remedy),
            None => error,
        }
    }
}

/// A setting, or nothing where this kernel or namespace has none.
fn setting(name: &str) -> Option<String> {
    sysctl::read(name).ok()
}

fn is_on(name: &str) -> bool {
    setting(name).is_some_and(|value| value != "0")
}

/// A program, as one writes it to have it work on the network namespace that is looked at.
fn here(program: &str) -> String {
    Called::entered().command(program)
}

/// The command that changes a setting.
fn set(name: &str, value: u32) -> String {
    format!("{} -w {name}={value}", here("sysctl"))
}

/// Packets of a part of a bridge or bond come by the whole.
fn parts(netlink: &mut Netlink, devices: &[(&str, &Device)]) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for (option, device) in devices {
        let Some(whole) = device.master.and_then(|index| netlink.link(index).ok()) else {
            continue;
        };
        let kind = whole.kind.as_deref().unwrap_or_default();
        if matches!(kind, "bridge" | "bond" | "team") {
            found.push(Finding::in_the_way(
                "parts",
                format!(
                    "--{option}: {} is a port of the {kind} {}: what arrives there arrives \
                     through {}, and nothing would be diverted",
                    device.name, whole.name, whole.name
                ),
                format!("name the {kind}: --{option} {}", whole.name),
            ));
        }
    }
    if found.is_empty() {
        found.push(Finding::ok("parts", "no device is a port of a bridge or bond"));
    }
    Ok(found)
}

/// br_netfilter has the packet filter see a bridge's frames before they are routed; routed packets
/// then pass it by, without the socket that they were given (nf_sabotage_in).
fn bridges(devices: &[(&str, &Device)]) -> Finding {
    let settings = ["net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables"];
    let bridge = devices.iter().find(|(_, device)| device.kind.as_deref() == Some("bridge"));
    let Some((option, bridge)) = bridge else {
        return Finding::ok("bridges", "no device is a bridge");
    };
    let on: Vec<&str> = settings.into_iter().filter(|name| is_on(name)).collect();
    if !on.is_empty() {
        let commands: Vec<String> = on.iter().map(|name| set(name, 0)).collect();
        return Finding::in_the_way(
            "bridges",
            format!(
                "--{option}: {} is a bridge, and {} {} on: new connections would hang",
                bridge.name,
                on.join(" and "),
                if on.len() == 1 { "is" } else { "are" }
            ),
            format!(
                "{} (Docker and Kubernetes switch it on: give them a bridge in another network \
                    namespace)",
                commands.join("; ")
            ),
        );
    }
    if bridge.filtered.contains(&true) {
        return Finding::in_the_way(
            "bridges",
            format!(
                "--{option}: {} is a bridge that calls the packet filter itself: new connections \
                 would hang",
                bridge.name
            ),
            format!(
                "{} link set {} type bridge nf_call_iptables 0 nf_call_ip6tables 0",
                here("ip"),
                bridge.name
            ),
        );
    }
    Finding::ok(
        "bridges",
        format!("{} is a bridge, and the packet filter does not see what it bridges", bridge.name),
    )
}

/// Whether packets are forwarded, of the versions that the devices have addresses of.
fn forwarding(netlink: &mut Netlink, devices: &[(&str, &Device)]) -> Result<Finding> {
    let mut has = [false; 2];
    for (_, device) in devices {
        for address in netlink.addresses(device.index)? {
            has[usize::from(address.is_ipv6())] = true;
        }
    }
    let names = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"];
    let on = names.map(is_on);
    let remedy = |version: usize| set(names[version], 1);
    // Without any address, as on a link that is still coming up, IPv4 is meant.
    let meant = if has == [false; 2] { [true, false] } else { has };
    Ok(match (meant, on) {
        ([true, _], [false, _]) => Finding::in_the_way(
            "forwarding",
            "this machine does not forward packets, so it is not a gateway",
            remedy(0),
        ),
        ([false, true], [_, false]) => Finding::in_the_way(
            "forwarding",
            "this machine does not forward IPv6 and has no IPv4, so it is not a gateway",
            remedy(1),
        ),
        ([true, true], [true, false]) => Finding::warning(
            "forwarding",
            "IPv4 is forwarded but IPv6 is not, although devices have IPv6 addresses: no IPv6 is \
             carried",
            remedy(1),
        ),
        (_, on) => {
            let versions = ["IPv4", "IPv6"]
                .into_iter()
                .zip(on)
                .filter_map(|(version, on)| on.then_some(version));
            Finding::ok(
                "forwarding",
                format!("{} forwarded", versions.collect::<Vec<_>>().join(" and ")),
            )
        }
    })
}

/// The kernel checks sources of what is diverted by their way back. With the mark in that question
/// the way back is this machine itself, and the packet is dropped, whatever rp_filter says.
fn way_back(devices: &[(&str, &Device)]) -> Finding {
    let name = |device: &str, what: &str| format!("net/ipv4/conf/{device}/{what}");
    let of = |what: &'static str| {
        let devices = devices.iter().map(|(_, device)| device.name.as_str());
        std::iter::once("all").chain(devices).find(move |device| is_on(&name(device, what)))
    };
    if let Some(device) = of("src_valid_mark") {
        return Finding::in_the_way(
            "way_back",
            format!(
                "net.ipv4.conf.{device}.src_valid_mark is on: packets that are diverted would be \
                    dropped (wg-quick switches it on)"
            ),
            set(&format!("net.ipv4.conf.{device}.src_valid_mark"), 0),
        );
    }
    let strict = devices
        .iter()
        .map(|(_, device)| device.name.as_str())
        .chain(["all"])
        .any(|device| setting(&name(device, "rp_filter")).as_deref() == Some("1"));
    Finding::ok(
        "way_back",
        if strict {
            "rp_filter is strict: packets that arrive on a different device from the one by which \
             answers leave are dropped"
        } else {
            "rp_filter is not strict"
        },
    )
}

/// Answers to diverted clients would be diverted, too.
fn marks() -> Finding {
    if is_on("net.ipv4.tcp_fwmark_accept") {
        return Finding::in_the_way(
            "marks",
            "net.ipv4.tcp_fwmark_accept is on: answers to diverted clients would be diverted, too",
            set("net.ipv4.tcp_fwmark_accept", 0),
        );
    }
    Finding::ok("marks", "sockets do not inherit marks from packets")
}

/// What may come to be in the way of a proxy that runs, so that new connections hang.
pub(crate) fn hanging(devices: &[(&str, &Device)]) -> Vec<Finding> {
    let all = [bridges(devices), way_back(devices), marks()];
    all.into_iter().filter(|finding| finding.standing == Standing::InTheWay).collect()
}

/// Packets that a running proxy has marked do not come to this machine.
pub(crate) fn misled(slot: Slot, versions: &[&str]) -> Finding {
    let diversion = slot.diversion();
    Finding::in_the_way(
        "rules",
        format!(
            "{} packets with the mark of the proxy that is running ({:#x}) are not routed by its \
             table {}",
            versions.join(" and "),
            diversion.mark,
            diversion.table
        ),
        format!(
            "remove the rule that takes them before priority {} (`{1} rule`, `{1} -6 rule`)",
            diversion.priority,
            here("ip")
        ),
    )
}

/// What is diverted comes to this machine, and is not tracked.
fn firewall(slot: Slot) -> Finding {
    let strict = tables::strict_inputs().unwrap_or_default();
    if strict.is_empty() {
        return Finding::ok("firewall", "no nf_tables chain drops packets to this machine");
    }
    let (nft, mark) = (here("nft"), slot.diverted());
    let rules: Vec<String> = strict
        .iter()
        .map(|chain| format!("{nft} insert rule {chain} meta mark {mark:#x} accept"))
        .collect();
    Finding::warning(
        "firewall",
        format!(
            "{} drops packets that no rule accepts: without a rule for the proxy's mark every new \
             connection hangs",
            strict.join(", ")
        ),
        format!("unless there is such a rule: {}", rules.join("; ")),
    )
}

/// Where tracked connections are looked at, ours are not among them.
fn tracking() -> Finding {
    match setting("net.netfilter.nf_conntrack_count") {
        None => Finding::ok("conntrack", "connections are not tracked here"),
        Some(count) => Finding::ok(
            "conntrack",
            format!("connections are tracked (currently {count}); those of the proxy are not"),
        ),
    }
}

fn offloads(device: &Device) -> Finding {
    let on: Vec<&str> = Offload::ALL
        .into_iter()
        .filter(|offload| offload::get(&device.name, *offload).unwrap_or(false))
        .map(Offload::name)
        .collect();
    let on = if on.is_empty() { "none".to_owned() } else { on.join(", ") };
    Finding::ok("offloads", format!("of {}: {on}; the router counts each segment", device.name))
}

fn mtu(options: &Options, wan: &Device, lan: &[Device]) -> Finding {
    let lans: Vec<String> =
        lan.iter().map(|device| format!("{} {}", device.name, device.mtu)).collect();
    let found = format!("{} {}, {} bytes", wan.name, wan.mtu, lans.join(", "));
    let limit = options
        .mss
        .map(|mss| format!("; segments on the long link are at most {mss} bytes"))
        .unwrap_or_default();
    if wan.mtu < 1280 {
        return Finding::warning(
            "mtu",
            format!("{found}: IPv6 needs 1280"),
            format!("{} link set {} mtu 1280", here("ip"), wan.name),
        );
    }
    Finding::ok("mtu", found + &limit)
}

/// Connections kept open to the other gateway, where they are asked for.
fn trunk(options: &Options) -> Result<Option<Finding>> {
    let Some(plan) = options.trunk_plan()? else { return Ok(None) };
    let (peer, port) = (plan.peer.ip(), plan.listen.port());
    let found = format!("{} connections to {}, from {}", plan.warm, plan.peer, plan.listen.ip());
    let version = if peer.is_ipv4() { "ip" } else { "ip6" };
    let strict = tables::strict_inputs().unwrap_or_default();
    if strict.is_empty() {
        return Ok(Some(Finding::ok("trunk", found)));
    }
    let nft = here("nft");
    let rules: Vec<String> = strict
        .iter()
        .map(|chain| {
            format!("{nft} insert rule {chain} {version} saddr {peer} tcp dport {port} accept")
        })
        .collect();
    Ok(Some(Finding::warning(
        "trunk",
        format!("{found}; the other gateway's connections have to be let in"),
        format!("unless there is such a rule: {}", rules.join("; ")),
    )))
}

/// Looks at everything, changes nothing. `name`: that of the proxy that would be.
///
/// # Errors
/// Options that are none; devices that are not there; not root.
pub fn look(options: &Options, name: &str) -> Result<Vec<Finding>> {
    let Some(wan_name) = &options.wan else { return Ok(Vec::new()) };
    let namespace = Namespace::current()
        .map_err(|e| Error::because("cannot open this network namespace", e))?;
    let mut netlink = Netlink::open()?;
    let (wan, lan) = wan::devices(&mut netlink, wan_name, &options.lan)?;
    let devices: Vec<(&str, &Device)> =
        std::iter::once(("wan", &wan)).chain(lan.iter().map(|device| ("lan", device))).collect();
    let owners = owners()?;
    let slot =
        Slot::all().find(|slot| owners.iter().all(|owner| owner.slot != *slot)).unwrap_or_default();
    let mut found = vec![match owner::obstacle(&owners, name, wan_name) {
        Some((told, remedy)) => Finding::in_the_way("owner", told, remedy),
        None => Finding::ok("owner", format!("nobody has {wan_name}")),
    }];
    found.extend(parts(&mut netlink, &devices)?);
    found.push(bridges(&devices));
    found.push(forwarding(&mut netlink, &devices)?);
    found.extend([way_back(&devices), marks(), firewall(slot), tracking()]);
    let others = netlink.others_that_divert(&slot.diversion())?;
    found.push(match others.first() {
        Some(rule) => Finding::in_the_way(
            "rules",
            format!("somebody else's routing rule uses our mark or table: {rule}"),
            format!("remove it ({} rule del ...)", here("ip")),
        ),
        None => Finding::ok("rules", "no other routing rule uses our mark or table"),
    });
    for owner in owners.iter().filter(|owner| owner.wan == *wan_name && owner.lives()) {
        let versions = netlink.misled(&owner.slot.diversion())?;
        found.extend((!versions.is_empty()).then(|| misled(owner.slot, &versions)));
    }
    if options.rate_bps()?.is_some() {
        found.push(wan::shaper(&mut netlink, &wan, &namespace)?);
    }
    found.extend(trunk(options)?);
    found.extend([offloads(&wan), mtu(options, &wan, &lan)]);
    Ok(found)
}
