//! What the kernel programs and their loaders share: libbpf-cargo makes it of `bpf/` and `engine/`,
//! where each structure and each number has its only definition, and its documentation. Names are
//! C's.
//!
//! A number is there as an enumeration that some structure has; the compiler's BTF knows no macros.

pub(crate) use crate::programs::endpoint::types::{
    xcp_about, xcp_ask, xcp_ask_flags, xcp_connection, xcp_connection_state, xcp_endpoint_counts,
    xcp_fall, xcp_give, xcp_no_room, xcp_prefix, xcp_record, xcp_robust_connection,
    xcp_robust_sender, xcp_sender, xcp_settings, xcp_shown,
};
pub(crate) use crate::programs::robust::types::xcp_robust_port;
pub(crate) use crate::programs::router::types::{
    xcp_control, xcp_police, xcp_port, xcp_port_counts, xcp_port_others, xcp_urgency, xcp_urgent,
};
pub(crate) use crate::programs::testing::types::{xcp_robust_answer, xcp_robust_step, xcp_step};

use crate::object::Plain;
use crate::programs;

/// Says that structures are what [`Plain`] asks for, and tells the test which they are.
macro_rules! plain {
    ($($kind:ty),* $(,)?) => {
        $(
            // SAFETY: libbpf-cargo makes them #[repr(C)] after the compiler's own BTF, of integers,
            // arrays of them and enumerations that are integers with names; the test below holds
            // that none has a gap.
            unsafe impl Plain for $kind {}
        )*
        #[cfg(test)]
        const PLAIN: &[(&str, usize)] = &[$((stringify!($kind), size_of::<$kind>())),*];
    };
}

plain!(
    xcp_about,
    xcp_connection,
    xcp_control,
    xcp_endpoint_counts,
    xcp_port,
    xcp_prefix,
    xcp_record,
    xcp_robust_connection,
    xcp_robust_port,
    xcp_robust_sender,
    xcp_robust_step,
    xcp_sender,
    xcp_urgency,
    xcp_urgent,
    programs::robust::types::xcp_port_counts,
    programs::robust::types::xcp_port_others,
    programs::robust::types::xcp_robust,
    programs::router::types::xcp_policer,
    programs::router::types::xcp_port_counts,
    programs::router::types::xcp_port_others,
    programs::router::types::xcp_router,
    programs::testing::types::xcp_forward,
    programs::testing::types::xcp_return,
    programs::testing::types::xcp_robust_sender,
);

#[cfg(test)]
mod tests {
    use super::*;

    const GENERATED: [&str; 4] = [
        include_str!(concat!(env!("OUT_DIR"), "/endpoint.skel.rs")),
        include_str!(concat!(env!("OUT_DIR"), "/robust.skel.rs")),
        include_str!(concat!(env!("OUT_DIR"), "/router.skel.rs")),
        include_str!(concat!(env!("OUT_DIR"), "/testing.skel.rs")),
    ];

    /// Bytes of a type's fields, one after the other, gaps left out.
    fn bytes(generated: &str, kind: &str) -> usize {
        if let Some(inner) = kind.strip_prefix('[') {
            let (element, number) = inner.strip_suffix(']').unwrap().rsplit_once(';').unwrap();
            return number.trim().parse::<usize>().unwrap() * bytes(generated, element.trim());
        }
        if let Ok(bits) = kind.trim_start_matches(['i', 'u']).parse::<usize>() {
            return bits / 8;
        }
        if let Some((_, number)) = generated.split_once(&format!("pub struct {kind}(pub ")) {
            return bytes(generated, number.split_once(')').unwrap().0);
        }
        let (_, fields) = generated
            .split_once(&format!("pub struct {kind} {{"))
            .unwrap_or_else(|| panic!("no {kind}"));
        let (fields, _) = fields.split_once('}').unwrap();
        let fields = fields.split(",\n").filter_map(|field| field.split_once(": "));
        fields.map(|(_, kind)| bytes(generated, kind.trim())).sum()
    }

    /// As each of the programs has them.
    #[test]
    fn what_is_shared_has_no_gaps() {
        for (name, size) in PLAIN {
            let name = name.rsplit("::").next().unwrap().trim();
            let of = GENERATED.iter().filter(|one| one.contains(&format!("pub struct {name} {{")));
            let sums: Vec<usize> = of.map(|one| bytes(one, name)).collect();
            assert!(!sums.is_empty() && sums.iter().all(|sum| sum == size), "{name}: {sums:?}");
        }
    }
}
