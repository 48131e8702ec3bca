//! Digests, by which a record tells that what was run has changed.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// The first half of a digest, in hexadecimal: enough to tell that something has changed.
pub fn digest<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut sum = Sha256::new();
    for text in texts {
        sum.update(text.len().to_le_bytes());
        sum.update(text);
    }
    sum.finalize()[..8].iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// A digest of what a scenario's file sets. Its words (title, description, what claims say and
/// where that stands) may be mended without a run; comments and the order of keys count no more.
pub fn of_settings(text: &str) -> String {
    let Ok(mut table) = text.parse::<toml::Table>() else { return digest([text]) };
    table.retain(|key, _| !["title", "description"].contains(&key));
    if let Some(claims) = table.get_mut("expect").and_then(toml::Value::as_array_mut) {
        for claim in claims.iter_mut().filter_map(toml::Value::as_table_mut) {
            claim.retain(|key, _| !["claim", "source"].contains(&key));
        }
    }
    digest([table.to_string().as_str()])
}

#[cfg(test)]
mod tests {
    use super::of_settings;

    const FILE: &str = "title = \"A\"\nname = \"x\"\nduration = \"1s\"\n[[expect]]\nclaim = \"Full\"\n\
        source = \"Fig. 1\"\nmetric = \"utilisation\"\nmin = 0.9\n";

    /// The file with one thing changed.
    fn changed(from: &str, to: &str) -> String {
        assert!(FILE.contains(from), "{from}");
        of_settings(&FILE.replace(from, to))
    }

    #[test]
    fn words_do_not_count_and_settings_do() {
        let sum = of_settings(FILE);
        assert_eq!(sum, changed("\"A\"", "\"B\"\ndescription = \"\"\"C\"\"\""));
        assert_eq!(sum, changed("\"Full\"", "\"It is full\""));
        assert_eq!(sum, changed("Fig. 1", "Fig. 2"));
        assert_eq!(
            sum,
            changed("name = \"x\"\nduration = \"1s\"\n", "duration='1s' # s\nname='x'\n")
        );
        assert_ne!(sum, changed("1s", "2s"));
        assert_ne!(sum, changed("0.9", "0.8"));
        assert_ne!(sum, changed("\"utilisation\"", "\"drops\""));
        assert_ne!(sum, changed("title = \"A\"\n", "title = \"A\"\nseed = 2\n"));
    }
}
