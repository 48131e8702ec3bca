//! The choices of the law and the named laws: for each its values, the words for them and what they
//! mean.

/// Enums whose values have a word and a sentence: the sentence is a value's documentation here and
/// wherever users read of it.
macro_rules! choices {
    ($($(#[doc = $doc:literal])+ $name:ident {
        $(#[doc = $first_doc:literal])+ $first:ident = 0 => $first_word:literal,
        $($(#[doc = $value_doc:literal])+ $value:ident = $number:literal => $word:literal,)+
    })+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name {
            $(#[doc = $first_doc])+
            #[default]
            $first = 0,
            $($(#[doc = $value_doc])+ $value = $number,)+
        }

        impl $name {
            /// All of them, in the order of their numbers in `engine/law.h`, from 0.
            pub const ALL: &'static [Self] = &[Self::$first, $(Self::$value),+];
            /// The words for them, in the same order.
            pub const WORDS: &'static [&'static str] = &[$first_word, $($word),+];
            /// What is chosen, and what each word means.
            pub const DOC: &'static str =
                concat!($($doc,)+ " `", $first_word, "`:", $($first_doc,)+
                    $(" `", $word, "`:", $($value_doc,)+)+);

            /// The word for it in scenario files and on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                Self::WORDS[self as usize]
            }

            /// The one that a word stands for.
            #[must_use]
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == word)
            }
        }
    )+};
}

choices! {
    /// The control interval d.
    Interval {
        /// The mean RTT of the flows (Katabi, Handley & Rohrs 2002).
        Mean = 0 => "mean",
        /// The longest RTT seen in the last interval ("An Example of Instability in XCP").
        Max = 1 => "max",
    }

    /// What counts as input traffic.
    Input {
        /// Every packet at the queue (Katabi, Handley & Rohrs 2002).
        All = 0 => "all",
        /// The packets of XCP flows and their acknowledgements only, as ns-2 counts.
        Xcp = 1 => "xcp",
    }

    /// How much of the capacity is XCP's.
    CapacityForXcp {
        /// All of it.
        Configured = 0 => "configured",
        /// What other traffic left of it in the last interval (Sakumoto, Ohsaki & Imase 2010);
        /// requires `input = "xcp"`.
        MinusOther = 1 => "minus-other",
    }

    /// Whose packets are shuffled.
    Shuffle {
        /// Everybody's.
        All = 0 => "all",
        /// Those of the flows that this link limits (iXCP); XCP flows that cross it then carry
        /// bottleneck ids.
        Matching = 1 => "matching",
    }

    /// Who gets spare bandwidth.
    Spare {
        /// All flows alike.
        All = 0 => "all",
        /// All flows, N/N_b times as much (P-XCP).
        Scaled = 1 => "scaled",
        /// The flows that this link limits, with headroom for the others (the corrected iXCP);
        /// requires `shuffle = "matching"`.
        Limited = 2 => "limited",
    }

    /// The gain on one packet's feedback.
    Gain {
        /// The same for all flows.
        Uniform = 0 => "uniform",
        /// min(1, d / the flow's RTT), on increase and decrease alike.
        OwnRtt = 1 => "own-rtt",
    }

    /// What the router knows of what it has granted.
    Control {
        /// Nothing (Katabi, Handley & Rohrs 2002).
        Draft = 0 => "draft",
        /// All of it, and when it will take effect ([robust.md](robust.md)); every choice above
        /// must be that of the preset `robust`, and `alpha` is the share of the gap that is closed
        /// in each tenth of a round trip.
        Calendar = 1 => "calendar",
    }

    /// TCP without XCP in the queue of a router with a calendar.
    Tcp {
        /// It is left alone.
        Left = 0 => "left",
        /// Its packets are dropped at random, so that it gets the share of the link that the
        /// number of its flows entitles it to, and never fills the queue.
        Steered = 1 => "steered",
    }

    /// How a router with a calendar knows its capacity.
    CapacityKnown {
        /// It is configured.
        Given = 0 => "given",
        /// It measures what departs while packets wait; `capacity` is the upper limit. Only in
        /// the simulator.
        Measured = 1 => "measured",
    }

    /// The law to start from.
    Preset {
        /// Katabi, Handley & Rohrs 2002.
        Xcp = 0 => "xcp",
        /// XCP with Increased Robustness (Sakumoto, Ohsaki & Imase 2010): the capacity minus other
        /// traffic, with XCP counted separately; set `target` as well.
        XcpIr = 1 => "xcp-ir",
        /// "Improving XCP to Achieve Max-Min Fair Bandwidth Allocation": shuffles only the flows
        /// that the link limits.
        Ixcp = 2 => "ixcp",
        /// The same, but these flows also get the spare bandwidth, with `alpha` 0.25 and
        /// `beta` 0.0884.
        IxcpR = 3 => "ixcp-r",
        /// Zhou et al. 2004: the spare bandwidth is multiplied by N/N_b.
        PXcp = 4 => "p-xcp",
        /// The longest RTT is the control interval ("An Example of Instability in XCP").
        MaxRtt = 5 => "max-rtt",
        /// The gain follows each flow's own RTT.
        OwnRtt = 6 => "own-rtt",
        /// A calendar of promises, with iXCP's shares ([robust.md](robust.md)), for flows with
        /// `congestion = "xcp-robust"`; `alpha` 0.7, `tcp` `"steered"`.
        Robust = 7 => "robust",
    }
}

impl Preset {
    /// Those without a calendar.
    pub const DRAFT: &'static [Self] = Self::ALL.split_at(Self::Robust as usize).0;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_one_value_each() {
        for (at, word) in Preset::WORDS.iter().enumerate() {
            let preset = Preset::named(word).unwrap();
            assert_eq!((preset.name(), preset as usize), (*word, at));
        }
        assert_eq!(Gain::named("own"), None);
        assert_eq!(Spare::ALL.len(), Spare::WORDS.len());
    }

    #[test]
    fn a_choice_says_what_its_words_mean() {
        assert_eq!(
            Gain::DOC,
            " The gain on one packet's feedback. `uniform`: The same for all flows. `own-rtt`: \
             min(1, d / the flow's RTT), on increase and decrease alike."
        );
    }
}
