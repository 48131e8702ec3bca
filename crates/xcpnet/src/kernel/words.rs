//! Settings as tc's users write them: a key, a space, a value, in any order.

use crate::failure::Failure;

/// Keys with their values, each taken once.
#[derive(Debug)]
pub struct Words {
    pairs: Vec<(String, String)>,
    known: &'static str,
}

impl Words {
    /// Splits words into pairs; `known` names the keys, for errors.
    pub fn new(words: &[String], known: &'static str) -> Result<Self, Failure> {
        let keys: Vec<&str> = known.split(' ').collect();
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in words.chunks(2) {
            let key = &pair[0];
            if !keys.contains(&key.as_str()) {
                return Err(Failure::new(format!(
                    "\"{key}\" is not a setting here; there are {}",
                    keys.join(", ")
                )));
            }
            let Some(value) = pair.get(1) else {
                return Err(Failure::new(format!("\"{key}\" is not followed by its value")));
            };
            if pairs.iter().any(|(k, _)| k == key) {
                return Err(Failure::new(format!("\"{key}\" is given twice")));
            }
            pairs.push((key.clone(), value.clone()));
        }
        Ok(Self { pairs, known })
    }

    /// A value as it was typed.
    pub fn text(&self, key: &str) -> Option<&str> {
        debug_assert!(self.known.split(' ').any(|k| k == key), "{key} can be typed");
        self.pairs.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// A value read by a function.
    pub fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Failure> {
        self.text(key).map(read).transpose().map_err(|e| Failure::new(format!("{key}: {e}")))
    }

    /// One of some names.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<Option<T>, Failure> {
        self.read(key, |value| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            let found = choices.iter().find(|(name, _)| *name == value);
            found
                .map(|(_, choice)| *choice)
                .ok_or_else(|| format!("\"{value}\" is not one of {}", names.join(", ")))
        })
    }

    /// A number.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Result<Option<T>, Failure> {
        self.read(key, |value| {
            value.parse().map_err(|_| format!("\"{value}\" is not a number that fits here"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Words, Failure> {
        Words::new(&text.split(' ').map(str::to_owned).collect::<Vec<_>>(), "dev capacity limit")
    }

    #[test]
    fn pairs_in_any_order_each_once() {
        let w = words("capacity 10mbit dev eth0").unwrap();
        assert_eq!(
            (w.text("dev"), w.text("capacity"), w.text("limit")),
            (Some("eth0"), Some("10mbit"), None)
        );
        assert!(words("dev").unwrap_err().to_string().contains("not followed"));
        assert!(words("dev a dev b").unwrap_err().to_string().contains("twice"));
        assert!(words("device a").unwrap_err().to_string().contains("dev, capacity, limit"));
    }
}
