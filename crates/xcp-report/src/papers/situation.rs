//! A row of a table that is made of scenario files: what it is called and what is said of it, in
//! Markdown. Its numbers are for the tables.

/// What a row is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Situation {
    /// `PAPER/FIGURE`, as the command takes it.
    pub name: String,
    /// In a few words.
    pub title: String,
    /// The first paragraph of the file's description: what the situation is.
    pub about: String,
    /// The rest: what is seen.
    pub seen: String,
}

impl Situation {
    /// Of a file with this description.
    #[must_use]
    pub fn new(name: String, title: String, description: &str) -> Self {
        let mut paragraphs = description
            .trim()
            .split("\n\n")
            .map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "));
        Self {
            name,
            title,
            about: paragraphs.next().unwrap_or_default(),
            seen: paragraphs.collect::<Vec<_>>().join("\n\n"),
        }
    }

    /// A link to its part of the page.
    #[must_use]
    pub fn link(&self) -> String {
        format!("[{}](#{})", self.title, self.slug())
    }

    /// The anchor that its heading gets on the usual sites.
    fn slug(&self) -> String {
        let anchor = |c: char| {
            if c == ' ' {
                Some('-')
            } else {
                (c.is_alphanumeric() || c == '-').then(|| c.to_ascii_lowercase())
            }
        };
        self.title.chars().filter_map(anchor).collect()
    }

    /// Its part of the page, but for numbers and [`Situation::command`].
    #[must_use]
    pub fn heading(&self) -> String {
        let seen = if self.seen.is_empty() { String::new() } else { format!("\n{}\n", self.seen) };
        format!("\n### {}\n\n{}\n{seen}", self.title, self.about)
    }

    /// The command that runs it.
    #[must_use]
    pub fn command(&self) -> String {
        format!("`xcpnet reproduce {}`\n", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_may_have_several_paragraphs() {
        let text = "A\nsituation.\n\nThis is\nseen.\n\nAnd so is this.\n";
        let of = Situation::new("t/1".into(), "A row".into(), text);
        assert_eq!(
            (of.about.as_str(), of.seen.as_str()),
            ("A situation.", "This is seen.\n\nAnd so is this.")
        );
        assert_eq!(
            of.heading(),
            "\n### A row\n\nA situation.\n\nThis is seen.\n\nAnd so is this.\n"
        );
    }
}
