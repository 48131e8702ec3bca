//! What people write and are told, whatever it is about: paths of keys, lists of words, and the
//! word that was probably meant.

/// Splits `link.bottleneck.rate` at its dots; parts in double quotes may contain dots.
pub fn split_path(text: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in text.trim().chars() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            c => parts.last_mut()?.push(c),
        }
    }
    (!quoted && parts.iter().all(|p| !p.is_empty())).then_some(parts)
}

/// The known word nearest to `word`, if it is near enough to be what was meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: String = word.to_lowercase().chars().take(64).collect();
    let most =
        |k: &str| (1 + k.chars().count() / 4).min(k.chars().count().min(word.chars().count()) - 1);
    known
        .into_iter()
        .filter(|k| !k.is_empty() && !word.is_empty())
        // A swap of neighbours, the commonest slip, counts once.
        .map(|k| (strsim::osa_distance(&word, &k.to_lowercase()), k))
        .filter(|(d, k)| *d <= most(k))
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

/// "`a`, `b` and `c`", at most a dozen of them.
pub fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    let shown: Vec<String> = words.iter().take(12).map(|w| format!("`{w}`")).collect();
    match (shown.as_slice(), words.len() > 12) {
        ([], _) => "none".into(),
        (shown, true) => format!("{} and {} more", shown.join(", "), words.len() - 12),
        ([one], false) => one.clone(),
        ([first @ .., last], false) => format!("{} and {last}", first.join(", ")),
    }
}

/// `1 packet`, `2 packets`.
#[must_use]
pub fn plural(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// Words of other programs for what is called differently here.
const SYNONYMS: &[(&str, &str)] = &[
    ("bandwidth", "rate"),
    ("bandwith", "rate"),
    ("capacity", "rate"),
    ("speed", "rate"),
    ("latency", "delay"),
    ("propagation", "delay"),
    ("nodes", "between"),
    ("ends", "between"),
    ("buffer", "queue"),
    ("qdisc", "queue"),
    ("discipline", "kind"),
    ("size", "limit"),
    ("outage", "blackout"),
    ("src", "from"),
    ("source", "from"),
    ("dst", "to"),
    ("destination", "to"),
    ("protocol", "congestion"),
    ("cc", "congestion"),
    ("tcp", "congestion"),
    ("algorithm", "congestion"),
    ("pacing", "paced"),
    ("mss", "packet"),
    ("mtu", "packet"),
    ("iw", "initial-window"),
    ("end", "stop"),
    ("time", "duration"),
    ("name", "title"),
    ("fifo", "drop-tail"),
    ("droptail", "drop-tail"),
    ("pfifo", "drop-tail"),
    ("throughput", "goodput"),
];

/// A remedy: the word that was probably meant, or all there are.
pub fn suggest<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
    plural: &str,
) -> String {
    if known.clone().into_iter().next().is_none() {
        return format!("there are no {plural}");
    }
    let synonym = SYNONYMS.iter().find(|(w, _)| w.eq_ignore_ascii_case(word)).map(|(_, k)| *k);
    match synonym
        .filter(|s| known.clone().into_iter().any(|k| k == *s))
        .or_else(|| nearest(word, known.clone()))
    {
        Some(only) if known.clone().into_iter().count() == 1 => {
            format!("did you mean `{only}`? That is the only one")
        }
        None if known.clone().into_iter().count() == 1 => {
            format!("the only one is {}", listed(known))
        }
        Some(k) => format!("did you mean `{k}`? The {plural} are {}", listed(known)),
        None => format!("the {plural} are {}", listed(known)),
    }
}
