//! Words of a scenario's file as HTML: paragraphs, lists, code and bold. Anything else of Markdown
//! stays as it is written.

use std::fmt::Write as _;

use super::escape;

/// Text for HTML in which what stands between backticks is code, and between two asterisks bold.
pub fn inline(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // A backtick, or a pair of asterisks, without its fellow is only itself.
    let pairs = if parts.len() % 2 == 1 { parts.len() } else { parts.len() - 1 };
    let is_code = |i: usize| i % 2 == 1 && i < pairs;
    let marks = (0..parts.len()).filter(|i| !is_code(*i)).map(|i| parts[i].matches("**").count());
    let mut left = marks.sum::<usize>() / 2 * 2;
    let mut bold = false;
    let mut out = String::new();
    for (i, part) in parts.iter().enumerate() {
        if is_code(i) {
            let _ = write!(out, "<code>{}</code>", escape(part));
            continue;
        }
        if i >= pairs {
            out.push('`');
        }
        for (n, words) in part.split("**").enumerate() {
            if n > 0 && left > 0 {
                bold = !bold;
                left -= 1;
                out.push_str(if bold { "<strong>" } else { "</strong>" });
            } else if n > 0 {
                out.push_str("**");
            }
            let _ = write!(out, "{}", escape(words));
        }
    }
    out
}

/// Text with blank lines and lists, as files have it.
pub fn paragraphs(text: &str) -> String {
    let mut out = String::new();
    for part in text.split("\n\n").filter(|p| !p.trim().is_empty()) {
        let (mut words, mut items): (String, Vec<String>) = (String::new(), Vec::new());
        for line in part.lines() {
            match (line.trim_start().strip_prefix("- "), items.last_mut()) {
                (Some(item), _) => items.push(item.to_owned()),
                (None, Some(item)) => {
                    item.push(' ');
                    item.push_str(line.trim());
                }
                (None, None) => {
                    words.push_str(line);
                    words.push(' ');
                }
            }
        }
        if !words.trim().is_empty() {
            let _ = write!(out, "<p>{}</p>", inline(words.trim()));
        }
        if !items.is_empty() {
            let items: Vec<String> =
                items.iter().map(|i| format!("<li>{}</li>", inline(i))).collect();
            let _ = write!(out, "<ul>{}</ul>", items.concat());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_are_code() {
        assert_eq!(inline("a `b<c` d"), "a <code>b&lt;c</code> d");
        assert_eq!(inline("a `b` c`d"), "a <code>b</code> c`d");
        assert_eq!(inline("plain"), "plain");
    }

    #[test]
    fn two_asterisks_are_bold() {
        assert_eq!(inline("**`a` b** < c"), "<strong><code>a</code> b</strong> &lt; c");
        assert_eq!(inline("**a** `**` **b"), "<strong>a</strong> <code>**</code> **b");
        assert_eq!(inline("2 ** 3 `a"), "2 ** 3 `a");
    }

    #[test]
    fn descriptions_become_paragraphs_and_lists() {
        let text = "Left open, and\nchosen here:\n- how long: 100 s;\n- which TCP: SACK,\n  of \
            Linux.\n\nA < B.";
        assert_eq!(
            paragraphs(text),
            "<p>Left open, and chosen here:</p><ul><li>how long: 100 s;</li><li>which TCP: SACK, \
                of Linux.</li></ul><p>A &lt; B.</p>"
        );
    }
}
