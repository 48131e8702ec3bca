//! A law (`xcp-law`) as the C of `engine/law.h` takes it.

use xcp_law::{ConfigError, Control, Preset, RouterConfig, fraction};

use crate::ffi;

/// The engine's form of a law.
///
/// # Errors
/// What [`RouterConfig::check`] refuses, which is what `xcp_law_check` does, and a law for a router
/// of the other kind.
pub(crate) fn checked(config: &RouterConfig, control: Control) -> Result<ffi::Law, ConfigError> {
    config.check()?;
    if config.control != control {
        return Err(ConfigError::OtherRouter);
    }
    Ok(law(config))
}

/// The same, whether or not it is a law that a router can run.
fn law(config: &RouterConfig) -> ffi::Law {
    let gain = |v| fraction(v).unwrap_or(0);
    ffi::Law {
        capacity: config.capacity_bytes_per_sec,
        min_interval_ns: config.min_interval_ns,
        max_interval_ns: config.max_interval_ns,
        queue_target: config.queue_target_bytes,
        alpha: gain(config.alpha),
        beta: gain(config.beta),
        gamma: gain(config.gamma),
        overhead: config.overhead_bytes,
        interval: config.interval as u8,
        capacity_for_xcp: config.capacity_for_xcp as u8,
        shuffle: config.shuffle as u8,
        spare: config.spare as u8,
        gain: config.gain as u8,
        input: config.input as u8,
        pools: u8::from(config.pools),
        spare_most: config.spare_most,
        control: config.control as u8,
        tcp: config.tcp as u8,
        capacity_known: config.capacity_known as u8,
        unused: [0; 5],
    }
}

/// The named law that consists of these choices, whatever its numbers are and whatever it takes for
/// input: these are settings of any law.
pub(crate) fn named(theirs: &ffi::Law) -> Option<Preset> {
    let choices = |law: &ffi::Law| {
        (law.interval, law.capacity_for_xcp, law.shuffle, law.spare, law.gain, law.control)
    };
    let ours = |preset: &Preset| law(&RouterConfig::preset(*preset, 1));
    Preset::ALL.iter().copied().find(|preset| choices(&ours(preset)) == choices(theirs))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use xcp_law::{CapacityForXcp, CapacityKnown, Gain, Input, Interval, Shuffle, Spare, Tcp};

    use super::*;

    /// `engine/law.h` is the authority for what a named law consists of.
    #[test]
    fn named_laws_are_the_engines() {
        for preset in Preset::ALL {
            let mut theirs = ffi::Law::default();
            // SAFETY: writes one Law to the pointer, which is valid and exclusive.
            unsafe { ffi::xcp_shim_law_preset(&mut theirs, *preset as u32, 1_000_000) };
            let ours = law(&RouterConfig::preset(*preset, 1_000_000));
            assert_eq!(ours, theirs, "{}", preset.name());
        }
    }

    #[test]
    fn a_law_is_known_by_its_choices() {
        for preset in Preset::ALL {
            let set = RouterConfig {
                alpha: 0.3,
                input: Input::Xcp,
                max_interval_ns: 1_000_000_000,
                ..RouterConfig::preset(*preset, 1_000_000)
            };
            assert_eq!(named(&law(&set)), Some(*preset));
        }
        let two = RouterConfig { gain: Gain::OwnRtt, ..RouterConfig::preset(Preset::PXcp, 1000) };
        assert_eq!(named(&law(&two)), None);
    }

    fn one_of<T: Copy + std::fmt::Debug>(all: &'static [T]) -> impl Strategy<Value = T> {
        prop::sample::select(all)
    }

    /// Numbers around the ends of their ranges.
    fn near(end: u64) -> impl Strategy<Value = u64> {
        prop_oneof![0..3u64, (0..3u64).prop_map(move |n| end - 1 + n), any::<u64>()]
    }

    proptest! {
        /// What the C refuses is refused here, and nothing else.
        #[test]
        fn what_is_refused_is_what_the_engine_refuses(
            capacity in near(1 << 40), intervals in (near(1 << 42), near(1 << 42)),
            target in prop_oneof![near(1 << 40), near(3000)], overhead in near(65535), alpha in prop_oneof![Just(0.0), 0.0..1.0f64],
            input in one_of(Input::ALL), of_capacity in one_of(CapacityForXcp::ALL),
            shuffle in one_of(Shuffle::ALL), spare in one_of(Spare::ALL), spare_most in one_of(&[0, 2, 8]),
            interval in one_of(Interval::ALL), gain in one_of(Gain::ALL), sound in any::<bool>(),
            preset in one_of(Preset::ALL), tcp in one_of(Tcp::ALL), known in one_of(CapacityKnown::ALL), own in any::<bool>(),
            beta in prop_oneof![Just(None), (0.0..1.0f64).prop_map(Some)],
        ) {
            let mut config = RouterConfig {
                alpha, input, capacity_for_xcp: of_capacity, shuffle, spare, spare_most, interval, gain,
                tcp, capacity_known: known, ..RouterConfig::preset(preset, 1000)
            };
            if own {
                config = RouterConfig { alpha, spare_most, capacity_known: known, ..RouterConfig::preset(preset, 1000) };
            }
            config.beta = beta.unwrap_or(config.beta);
            if !sound {
                config.capacity_bytes_per_sec = capacity;
                (config.min_interval_ns, config.max_interval_ns) = intervals;
                config.queue_target_bytes = target;
                config.overhead_bytes = u32::try_from(overhead).unwrap_or(u32::MAX);
            }
            let theirs = law(&config);
            let mut state = [0; ffi::ROUTER_WORDS];
            let mut robust = [0; ffi::ROBUST_WORDS];
            let refused = match config.control {
                // SAFETY: as in `Router::new`.
                Control::Draft => unsafe { ffi::xcp_shim_router_init(&mut state, &theirs, 0, 0) },
                // SAFETY: as in `RobustRouter::new`.
                Control::Calendar => unsafe { ffi::xcp_shim_robust_init(&mut robust, &theirs, 0, 0) },
            } != 0;
            prop_assert_eq!(config.check().is_err(), refused, "{:?}", config.check());
        }
    }
}
