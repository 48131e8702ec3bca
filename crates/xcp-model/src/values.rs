//! The numbers of a series. Of a web's thousands of transfers each is there for a moment of the
//! run, so what stays as it is at the beginning and at the end is kept once.

/// One number after the other.
#[derive(Debug, Clone, Default)]
pub struct Values {
    first: Stretch,
    middle: Vec<f64>,
    last: Stretch,
}

/// The same number several times, to the bit: NaN, too.
#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    value: f64,
    times: usize,
}

impl Stretch {
    /// Whether this is another one of them, which is then counted.
    fn takes(&mut self, value: f64) -> bool {
        let same = self.times == 0 || self.value.to_bits() == value.to_bits();
        if same {
            self.value = value;
            self.times += 1;
        }
        same
    }

    fn iter(self) -> impl DoubleEndedIterator<Item = f64> + Clone {
        std::iter::repeat_n(self.value, self.times)
    }
}

impl Values {
    /// Adds one.
    pub fn push(&mut self, value: f64) {
        let none_after = self.middle.is_empty() && self.last.times == 0;
        if none_after && self.first.takes(value) || self.last.takes(value) {
            return;
        }
        self.middle.extend(self.last.iter());
        self.last = Stretch { value, times: 1 };
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.first.times + self.middle.len() + self.last.times
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The one at this place; `None` beyond the last.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<f64> {
        let Some(beyond) = place.checked_sub(self.first.times) else {
            return Some(self.first.value);
        };
        match self.middle.get(beyond) {
            Some(value) => Some(*value),
            None => (place < self.len()).then_some(self.last.value),
        }
    }

    /// All of them in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = f64> + Clone + '_ {
        self.first.iter().chain(self.middle.iter().copied()).chain(self.last.iter())
    }

    /// All of them, one beside the other.
    #[must_use]
    pub fn to_vec(&self) -> Vec<f64> {
        self.iter().collect()
    }

    /// Gives back memory that no more numbers will need.
    pub fn shrink_to_fit(&mut self) {
        self.middle.shrink_to_fit();
    }

    /// What is to be kept of them: how often the first number comes, how often the last one, and
    /// these two with what lies between. [`Values::from_parts`] makes the same of it.
    pub fn parts(&self) -> (usize, usize, impl Iterator<Item = f64> + '_) {
        let middle = self.middle.iter().copied();
        let ends = (self.first.value, self.last.value);
        (
            self.first.times,
            self.last.times,
            std::iter::once(ends.0).chain(middle).chain(std::iter::once(ends.1)),
        )
    }

    /// The numbers of these parts; `None` if they are not what [`Values::parts`] gave.
    #[must_use]
    pub fn from_parts(first: usize, last: usize, mut numbers: Vec<f64>) -> Option<Self> {
        let ends = (*numbers.first()?, numbers.pop()?);
        if numbers.is_empty() {
            return None;
        }
        numbers.remove(0);
        first.checked_add(numbers.len())?.checked_add(last)?;
        Some(Self {
            first: Stretch { value: ends.0, times: first },
            middle: numbers,
            last: Stretch { value: ends.1, times: last },
        })
    }
}

/// The same numbers, to the bit.
impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.iter().map(f64::to_bits).eq(other.iter().map(f64::to_bits))
    }
}

impl FromIterator<f64> for Values {
    fn from_iter<I: IntoIterator<Item = f64>>(numbers: I) -> Self {
        let mut values = Self::default();
        numbers.into_iter().for_each(|n| values.push(n));
        values.shrink_to_fit();
        values
    }
}

impl From<Vec<f64>> for Values {
    fn from(numbers: Vec<f64>) -> Self {
        numbers.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bits(numbers: impl IntoIterator<Item = f64>) -> Vec<u64> {
        numbers.into_iter().map(f64::to_bits).collect()
    }

    proptest! {
        #[test]
        fn are_what_was_pushed(lengths in prop::collection::vec((0..4usize, 0..5usize), 0..12)) {
            let numbers: Vec<f64> = lengths
                .into_iter()
                .flat_map(|(which, times)| {
                    std::iter::repeat_n([0.0, -0.0, f64::NAN, 1.5][which], times)
                })
                .collect();
            let values = Values::from(numbers.clone());
            prop_assert_eq!(values.len(), numbers.len());
            prop_assert_eq!(bits(values.iter()), bits(numbers.clone()));
            let back: Vec<f64> = values.iter().rev().collect();
            prop_assert_eq!(bits(back.into_iter().rev()), bits(numbers.clone()));
            for place in 0..numbers.len() + 2 {
                let there = numbers.get(place).map(|n| n.to_bits());
                prop_assert_eq!(values.get(place).map(f64::to_bits), there);
            }
            let (first, last, parts) = values.parts();
            let again = Values::from_parts(first, last, parts.collect());
            prop_assert_eq!(again.as_ref(), Some(&values));
            if let Some(more) = numbers.first() {
                let mut longer = values.clone();
                longer.push(*more);
                prop_assert!(longer != values);
            }
        }
    }

    #[test]
    fn a_moment_within_a_long_silence_takes_little_room() {
        let numbers =
            (0..100_000).map(|n| if (500..520).contains(&n) { 1.0 / f64::from(n) } else { 0.0 });
        let values: Values = numbers.collect();
        assert_eq!(values.len(), 100_000);
        assert!(values.middle.capacity() <= 32, "{}", values.middle.capacity());
    }

    #[test]
    fn what_is_no_parts_is_refused() {
        assert_eq!(Values::from_parts(0, 0, vec![]), None);
        assert_eq!(Values::from_parts(1, 1, vec![1.0]), None);
        assert_eq!(Values::from_parts(usize::MAX, 1, vec![1.0, 2.0, 3.0]), None);
    }
}
