//! Reads `[[expect]]`: which claims are made about the run of a variant, and which number of which
//! run each is held against.

use crate::error::Span;
use crate::fields::Fields;
use crate::hazards;
use crate::spec::{EXPECT, THAN};
use xcp_law::quantity::show_time;
use xcp_law::text::suggest;
use xcp_model::units::Period;
use xcp_model::{Expectation, OverSeeds, Scenario, Than};

/// The expectations that speak of this scenario, if it is a `quick` one those that it is judged by.
/// `variants` are the names of all variants of the file. The numbers are looked for only in a
/// `sound` scenario.
pub(crate) fn read(
    file: &Fields<'_>,
    scenario: &Scenario,
    variants: &[String],
    quick: bool,
    sound: bool,
) -> Vec<Expectation> {
    let mut result = Vec::new();
    for fields in file.tables("expect", &EXPECT) {
        fields.require("metric");
        let (min, max) = (fields.number("min"), fields.number("max"));
        if fields.item("min").is_none() && fields.item("max").is_none() {
            fields.faults.add(
                fields.span,
                "the expectation has no bound",
                "give `min`, `max` or both",
            );
        }
        if let (Some(low), Some(high)) = (min, max)
            && low > high
        {
            fields.faults.add(
                fields.span_of("max"),
                format!("no number lies between {low} and {high}"),
                "`max` must be at least `min`",
            );
        }
        let metric = fields.text("metric");
        let claim = match (
            fields.text("claim").or_else(|| metric.clone()).unwrap_or_default(),
            fields.text("source"),
        ) {
            (claim, Some(source)) => format!("{claim} ({source})"),
            (claim, None) => claim,
        };
        let over_seeds = fields.over_seeds("seeds").unwrap_or(OverSeeds::Median);
        let judged_quickly = fields.bool("quick").unwrap_or(true);
        if quick && !(judged_quickly && within(&fields, scenario)) {
            continue;
        }
        let period = period(&fields, scenario);
        let of = fields.names("variant");
        of.iter().flatten().for_each(|(name, span)| known_variant(&fields, name, *span, variants));
        let against = Against::read(&fields, scenario, variants, of.as_deref());
        let Some(metric) = metric.filter(|_| sound) else { continue };
        let applies =
            of.as_ref().is_none_or(|names| names.iter().any(|(name, _)| *name == scenario.variant));
        if let Some(against) = against {
            let than_metric = against.metric.clone().unwrap_or_else(|| metric.clone());
            let than_period = against.period.or(period);
            // Where the other number is from this run, its name has to be right here.
            if against.is_asked_of(&scenario.variant) {
                let at = if against.metric.is_some() {
                    against.fields.span_of("metric")
                } else {
                    fields.span_of("metric")
                };
                check(&fields, at, &than_metric, than_period, scenario);
            }
            let Some(other) = against.other(&scenario.variant).filter(|_| applies) else {
                continue;
            };
            if other == scenario.variant && than_metric == metric && than_period == period {
                // Said of all variants, it is said of all others.
                if of.is_some() {
                    let what = "the expectation compares a number with itself";
                    fields.faults.add(
                        against.fields.span,
                        what,
                        "name another variant, metric or period",
                    );
                }
                continue;
            }
            check(&fields, fields.span_of("metric"), &metric, period, scenario);
            let than = Than { variant: other, metric: than_metric, period: than_period };
            result.push(Expectation {
                metric,
                period,
                min,
                max,
                than: Some(than),
                claim,
                over_seeds,
            });
        } else if applies {
            check(&fields, fields.span_of("metric"), &metric, period, scenario);
            let is_share = metric == "jain" || metric.ends_with(".utilisation");
            if let Some(percent) = min.filter(|&min| is_share && min > 1.0) {
                fields.faults.add(
                    fields.span_of("min"),
                    format!("`{metric}` is a share from 0 to 1, and never {percent}"),
                    format!("write {} for {percent} %", percent / 100.0),
                );
            }
            result.push(Expectation { metric, period, min, max, than: None, claim, over_seeds });
        }
    }
    result
}

/// Whether the parts of the run that an expectation speaks of are in it: a shorter run is not
/// judged by what would have come later.
fn within(fields: &Fields<'_>, scenario: &Scenario) -> bool {
    let inside = |fields: &Fields<'_>| {
        let to = fields.time("to").unwrap_or(scenario.measure.to);
        to <= scenario.duration && fields.time("from").is_none_or(|from| from < to)
    };
    inside(fields) && fields.table("than", &THAN).as_ref().is_none_or(inside)
}

/// Reports a metric that a scenario's result will not have.
fn check(fields: &Fields<'_>, at: Span, metric: &str, period: Option<Period>, scenario: &Scenario) {
    if let Err((what, help)) = xcp_model::check_metric(metric, period, scenario) {
        fields.faults.add(at, what, help);
    }
}

/// Reports a name that no variant has.
pub(crate) fn known_variant(fields: &Fields<'_>, name: &str, span: Span, variants: &[String]) {
    if !variants.iter().any(|v| v == name) {
        let help = suggest(
            name,
            variants.iter().map(String::as_str).filter(|v| !v.is_empty()),
            "variants",
        );
        fields.faults.add(span, format!("no variant is named `{name}`"), help);
    }
}

/// `than` as written.
struct Against<'a> {
    fields: Fields<'a>,
    run: Other<'a>,
    metric: Option<String>,
    period: Option<Period>,
}

/// Which run the other number is from.
enum Other<'a> {
    Own,
    Variant(String),
    /// That of the variant before it in this list.
    Preceding(&'a [(String, Span)]),
}

impl<'a> Against<'a> {
    fn read(
        expectation: &Fields<'a>,
        scenario: &Scenario,
        variants: &[String],
        of: Option<&'a [(String, Span)]>,
    ) -> Option<Self> {
        let fields = expectation.table("than", &THAN)?;
        let variant = fields.name("variant");
        let preceding = fields.bool("preceding") == Some(true);
        let run = match (variant, preceding) {
            (Some(_), true) => {
                let what = "`than` names both a variant and the preceding one";
                fields.faults.add(
                    fields.span_of("preceding"),
                    what,
                    "leave out one of `variant` and `preceding`",
                );
                return None;
            }
            (Some(name), false) => {
                known_variant(&fields, &name, fields.span_of("variant"), variants);
                Other::Variant(name)
            }
            (None, true) => match of {
                Some(list) if list.len() > 1 => Other::Preceding(list),
                _ => {
                    let help = "list the variants in order: variant = [\"a\", \"b\", \"c\"]";
                    fields.faults.add(
                        fields.span_of("preceding"),
                        "this expectation lists no variants that precede one another",
                        help,
                    );
                    return None;
                }
            },
            (None, false) => Other::Own,
        };
        Some(Self { fields, run, metric: fields.text("metric"), period: period(&fields, scenario) })
    }

    /// The variant that this one's number is held against.
    fn other(&self, own: &str) -> Option<String> {
        match &self.run {
            Other::Own => Some(own.into()),
            Other::Variant(name) => Some(name.clone()),
            Other::Preceding(list) => {
                list.windows(2).find(|pair| pair[1].0 == own).map(|pair| pair[0].0.clone())
            }
        }
    }

    /// Whether some variant's number is held against this one's.
    fn is_asked_of(&self, own: &str) -> bool {
        match &self.run {
            Other::Own => false,
            Other::Variant(name) => name == own,
            Other::Preceding(list) => list.iter().rev().skip(1).any(|(name, _)| name == own),
        }
    }
}

/// `from` and `to`, within the run; `None` where neither is given.
fn period(fields: &Fields<'_>, scenario: &Scenario) -> Option<Period> {
    if fields.item("from").is_none() && fields.item("to").is_none() {
        return None;
    }
    let period = hazards::period(fields, scenario.measure.from, scenario.measure.to)?;
    if period.to > scenario.duration {
        let what = format!(
            "the period ends at {}, after the run's {}",
            show_time(period.to),
            show_time(scenario.duration)
        );
        fields.faults.add(
            fields.span_of("to"),
            what,
            "write an earlier `to` or a longer `duration`",
        );
    }
    Some(period)
}
