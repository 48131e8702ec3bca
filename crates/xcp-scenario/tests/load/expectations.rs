//! Expectations: which variants they are about, and with which these are compared.

use xcp_model::units::Period;

use crate::{read, small};

#[test]
fn expectations_go_to_their_variants() {
    let text = small(
        "",
        "",
        "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 0.9\n\
         [[expect]]\nmetric = \"links.S-D.reverse.drops\"\nmax = 0\nvariant = [\"b\"]\nclaim \
            = \"none dropped\"\nsource = \"a paper\"\nfrom = \"30s\"",
    );
    let all = read(&text);
    assert_eq!((all[0].expectations.len(), all[1].expectations.len()), (1, 2));
    assert_eq!(all[0].expectations[0].claim, "jain");
    let e = &all[1].expectations[1];
    assert_eq!((e.claim.as_str(), e.min, e.max), ("none dropped (a paper)", None, Some(0.0)));
    assert_eq!(e.period, Some(Period { from: 30_000_000_000, to: 60_000_000_000 }));
}

/// Who is compared with whom: one with another, all with one, each with the one before it in the
/// list, a run with itself elsewhere.
#[test]
fn comparisons_find_their_variants() {
    let text = small(
        "",
        "",
        "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n[[variant]]\nname = \"c\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 1\nvariant = \"b\"\nthan = \"a\"\nclaim = \"one\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 1\nthan = \"a\"\nclaim = \"all\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 1\nvariant = [\"c\", \"a\", \"b\"]\nthan = \
            { preceding = true }\nclaim = \"order\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 1\nvariant = \"c\"\nfrom = \"30s\"\nthan = \
            { to = \"30s\", metric = \"links.S-D.drops\" }\nclaim = \"own\"",
    );
    let pairs: Vec<(String, String, String)> = read(&text)
        .iter()
        .flat_map(|s| {
            s.expectations.iter().map(|e| {
                (e.claim.clone(), s.variant.clone(), e.than.as_ref().unwrap().variant.clone())
            })
        })
        .collect();
    let pairs: Vec<[&str; 3]> =
        pairs.iter().map(|(claim, own, other)| [claim.as_str(), own, other]).collect();
    assert_eq!(
        pairs,
        [
            ["order", "a", "c"],
            ["one", "b", "a"],
            ["all", "b", "a"],
            ["order", "b", "a"],
            ["all", "c", "a"],
            ["own", "c", "c"],
        ]
    );
    let own = read(&text)[2].expectations[1].than.clone().unwrap();
    assert_eq!(
        (own.metric.as_str(), own.period),
        ("links.S-D.drops", Some(Period { from: 0, to: 30_000_000_000 }))
    );
}
