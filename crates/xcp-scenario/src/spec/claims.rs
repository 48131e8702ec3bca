//! The keys of expectations.

use super::{Kind, REQUIRED, Spec, key};

/// `[[expect]]`.
pub(crate) static EXPECT: Spec = Spec {
    name: "expect",
    doc: "A claim about the result: a band for one number.",
    keys: &[
        key(
            "metric",
            Kind::Text,
            REQUIRED,
            "\"links.bottleneck.utilisation\"",
            "Which number it is about; see Metrics below.",
        ),
        key(
            "min",
            Kind::Number { min: f64::MIN, max: f64::MAX },
            "no bound",
            "0.95",
            "Smallest value inside the band. `min` or `max` must be given.",
        ),
        key(
            "max",
            Kind::Number { min: f64::MIN, max: f64::MAX },
            "no bound",
            "1",
            "Largest value inside the band.",
        ),
        key(
            "than",
            Kind::Short { short: "variant", table: &THAN },
            "none",
            "\"integer\"",
            "Another number, of which `min` and `max` are then multiples. `min = 1.1` and `than = \
             \"integer\"` mean at least a tenth more than in the variant `integer`.",
        ),
        key(
            "from",
            Kind::Time,
            "`measure`'s",
            "\"8s\"",
            "The beginning of the part of the run that is looked at; with `from` or `to` the \
             number is taken from the series.",
        ),
        key("to", Kind::Time, "`measure`'s", "\"8.5s\"", "Its end."),
        key("variant", Kind::NameOrNames, "all", "\"newreno\"", "The variants that it is about."),
        key("claim", Kind::Text, "the metric", "\"XCP fills the link\"", "The claim in words."),
        key(
            "source",
            Kind::Text,
            "none",
            "\"Katabi et al. 2002, Fig. 5\"",
            "Whose claim it is; shown in brackets after the claim.",
        ),
        key(
            "seeds",
            Kind::OverSeeds,
            "`\"median\"`",
            "0.8",
            "With several seeds, what must be inside the band: the median over the seeds, \
                `\"all\"` of them, or this share of them.",
        ),
        key("quick", Kind::Bool, "`true`", "false", "Whether `--quick` checks it."),
    ],
};

/// `than` of an expectation.
pub(crate) static THAN: Spec = Spec {
    name: "than",
    doc: "The number with which an expectation's is compared. `than = \"integer\"` is short for \
        `than = { variant = \"integer\" }`. A claim about all variants (no `variant`) is made \
        about all others.",
    keys: &[
        key(
            "variant",
            Kind::Name,
            "the same run",
            "\"integer\"",
            "The variant from whose run it comes.",
        ),
        key(
            "preceding",
            Kind::Bool,
            "`false`",
            "true",
            "Instead, the number comes from the run of the preceding variant in the expectation's \
             list `variant`. `max = 1` means that the numbers do not rise along the list.",
        ),
        key("metric", Kind::Text, "the same", "\"links.first.drops\"", "Which number."),
        key(
            "from",
            Kind::Time,
            "the expectation's",
            "\"8s\"",
            "The beginning of the part of the run that is looked at.",
        ),
        key("to", Kind::Time, "the expectation's", "\"8.5s\"", "Its end."),
    ],
};
