//! engine/num.h, recip.h and dither.h against exact integers: for every input, not only sensible
//! ones.

use num_bigint::BigUint;
use num_rational::Ratio;
use num_traits::{ToPrimitive, Zero};
use proptest::prelude::*;
use xcp_engine::exact::{
    Acc, Num, acc_add, clz, mul_fraction, num_div, num_mul, num_scaled, recip16, scale,
};
use xcp_engine::{Rounding, WireFormat};

type Q = Ratio<BigUint>;

fn exact(m: u64, e: i32) -> Q {
    let (one, m) = (BigUint::from(1u8), BigUint::from(m));
    if e >= 0 { Q::from_integer(m << e) } else { Q::new(m, one << -e) }
}

fn value(n: Num) -> Q {
    exact(n.m.into(), if n.m == 0 { 0 } else { n.e })
}

fn relative(got: &Q, want: &Q) -> f64 {
    let off = if got > want { got - want } else { want - got };
    if off.is_zero() { 0.0 } else { (off / want).to_f64().expect("finite") }
}

/// Any bits, small ones and those with few bits set as likely as large ones.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (any::<u64>(), 0..64u32).prop_map(|(v, k)| v >> k),
        (0..64u32, 0..3u64).prop_map(|(k, d)| (1u64 << k).wrapping_sub(d))
    ]
}

fn num() -> impl Strategy<Value = Num> {
    (word(), -500..500i32).prop_map(|(m, e)| num_scaled(m, e))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// BPF's leading zeros are the host's: the one place where the two compile different code.
    #[test]
    fn leading_zeros(v in word()) {
        prop_assume!(v != 0);
        let want = v.leading_zeros() as i32;
        prop_assert_eq!(clz(v), (want, want));
    }

    #[test]
    fn scaled_rounds_to_nearest(m in word(), e in -500..500i32) {
        let n = num_scaled(m, e);
        prop_assert!(m == 0 && n.m == 0 || n.m >> 31 == 1);
        prop_assert!(relative(&value(n), &exact(m, e)) <= 2f64.powi(-32));
    }

    #[test]
    fn mul_and_div(a in num(), b in num()) {
        let (x, y) = (value(a), value(b));
        prop_assert!(relative(&value(num_mul(a, b)), &(&x * &y)) <= 2f64.powi(-32));
        if b.m == 0 {
            prop_assert_eq!(num_div(a, b).m, 0);
        } else {
            prop_assert!(relative(&value(num_div(a, b)), &(&x / &y)) <= 1.5 * 2f64.powi(-32));
        }
    }

    #[test]
    fn scale_rounds_to_nearest_and_saturates(m in word(), e in -200..200i32, max in 0..=1u64 << 63) {
        let got = Q::from_integer(scale(m, e, max).into());
        let want = exact(m, e);
        let half = Q::new(1u8.into(), 2u8.into());
        let most = Q::from_integer(max.into());
        if want > &most + &half {
            prop_assert_eq!(got, most);
        } else {
            let off = if got > want { &got - &want } else { &want - &got };
            prop_assert!(off <= half);
        }
    }

    #[test]
    fn fraction_rounds_down(v in word(), f in any::<u32>()) {
        prop_assert_eq!(u128::from(mul_fraction(v, f)), (u128::from(v) * u128::from(f)) >> 32);
    }

    /// The host's 128-bit arithmetic as the reference for the two words.
    #[test]
    fn sums_are_exact_but_for_their_last_bit(terms in prop::collection::vec((word(), -70..130i32), 1..20)) {
        let (mut acc, mut want, mut saturated) = (Acc::default(), 0u128, false);
        for (m, e) in terms {
            acc_add(&mut acc, m, e);
            let m = u128::from(m);
            let term = if e <= -64 { 0 } else if e <= 0 { m >> -e } else if m == 0 { 0 } else if e as u32 > m.leading_zeros() { u128::MAX } else { m << e };
            let limit = (1u128 << 127) - 1;
            want = want.saturating_add(term.min(limit)).min(limit);
            saturated |= want == limit;
            let got = u128::from(acc.hi) << 64 | u128::from(acc.lo);
            let fine = if saturated { got >= want - (want >> 63) && got <= limit } else { got == want };
            prop_assert!(fine, "{got:x} {want:x}");
        }
    }

    /// Random rounding keeps the mean: over all of 2^10 evenly spread dithers the mean is within
    /// 2^-9 steps of the value.
    #[test]
    fn random_rounding_has_no_bias(v in 1e-5..1e12f64, negative in any::<bool>(), format in prop_oneof![Just(WireFormat::Extended), Just(WireFormat::Classic)]) {
        let v = if format == WireFormat::Classic { v / 1e6 } else { v };
        let v = if negative { -v } else { v };
        let step = {
            let up = format.decode_feedback(format.encode_feedback(v, Rounding::Random(u64::MAX)));
            let down = format.decode_feedback(format.encode_feedback(v, Rounding::TowardsZero));
            prop_assert!(down.abs() <= v.abs() && v.abs() <= up.abs());
            (up - down).abs()
        };
        let n = 1024u64;
        let mean = (0..n).map(|i| format.decode_feedback(format.encode_feedback(v, Rounding::Random(i << 54 | 1 << 53)))).sum::<f64>() / n as f64;
        prop_assert!((mean - v).abs() <= step / 512.0 + v.abs() * 1e-12, "{mean} for {v}, steps \
            of {step}");
    }
}

#[test]
fn reciprocals_of_all_windows() {
    for v in 1..=u16::MAX {
        let want = Q::new(1u8.into(), v.into());
        assert!(relative(&value(recip16(v)), &want) <= 2f64.powi(-29), "1 / {v}");
    }
}
