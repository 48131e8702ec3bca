//! Names of flows. There may be a million of them, nearly all members of a group: a name is the
//! group's, which its members share, and a number.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A flow's name: `web`, or `web-7` for a member of a group.
///
/// Whatever ends in `-NUMBER` is kept as stem and number, wherever it comes from, so that equal
/// texts are equal names. They are ordered by stem, then by number: `web-9` is before `web-10`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowName {
    stem: Arc<str>,
    number: Option<NonZeroU32>,
}

impl FlowName {
    /// Member `number` of a group; without a number the group's only flow.
    #[must_use]
    pub fn member(group: &Arc<str>, number: Option<NonZeroU32>) -> Self {
        match (number, split(group)) {
            (None, Some((stem, number))) => Self { stem: stem.into(), number: Some(number) },
            _ => Self { stem: group.clone(), number },
        }
    }

    /// The name without its number.
    #[must_use]
    pub fn stem(&self) -> &str {
        &self.stem
    }

    /// The number at its end.
    #[must_use]
    pub fn number(&self) -> Option<NonZeroU32> {
        self.number
    }
}

/// Stem and number of a text, if writing them one after the other gives it back.
fn split(text: &str) -> Option<(&str, NonZeroU32)> {
    let (stem, digits) = text.rsplit_once('-')?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    Some((stem, digits.parse().ok().filter(|_| plain)?))
}

impl From<&str> for FlowName {
    fn from(text: &str) -> Self {
        match split(text) {
            Some((stem, number)) => Self { stem: stem.into(), number: Some(number) },
            None => Self { stem: text.into(), number: None },
        }
    }
}

impl From<String> for FlowName {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl fmt::Display for FlowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "{}-{number}", self.stem),
            None => f.write_str(&self.stem),
        }
    }
}

impl fmt::Debug for FlowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl Serialize for FlowName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FlowName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Names are what is written, whether a text or a member of a group.
        #[test]
        fn names_are_their_texts(text in "[a-c-]{0,4}(-?[0-9]{1,12})?", number in prop::option::of(1u32..)) {
            prop_assert_eq!(FlowName::from(text.as_str()).to_string(), text.clone());
            let number = number.and_then(NonZeroU32::new);
            let member = FlowName::member(&text.as_str().into(), number);
            let written = number.map_or(text.clone(), |n| format!("{text}-{n}"));
            prop_assert_eq!(&member, &FlowName::from(written.as_str()));
            prop_assert_eq!(member.to_string(), written);
        }
    }

    #[test]
    fn numbers_count() {
        assert!(FlowName::from("web-9") < FlowName::from("web-10"));
        assert_eq!(
            (FlowName::from("a-b-3").stem(), FlowName::from("a-b-3").number()),
            ("a-b", NonZeroU32::new(3))
        );
        assert_eq!(FlowName::from("web-03").stem(), "web-03", "not what a group calls its members");
    }
}
