//! What clients say at the SOCKS and HTTP port, in pieces: the first byte says how long these are.
//! However it is cut, it means the same; nothing is used up that was not given, and no answer costs
//! nothing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xcp_pep::listen::{Negotiation, Reached, Step, Target};

#[derive(Debug, PartialEq, Eq)]
enum End {
    Go(Target),
    Refused(Vec<u8>),
    More,
}

fn talk(input: &[u8], piece: usize) -> (End, Vec<u8>, Vec<u8>) {
    let (mut negotiation, mut buffer, mut answered) =
        (Negotiation::Unknown, Vec::new(), Vec::new());
    let mut rest = input.chunks(piece.max(1));
    loop {
        match negotiation.advance(&buffer) {
            Step::More => match rest.next() {
                Some(piece) => buffer.extend_from_slice(piece),
                None => return (End::More, answered, buffer),
            },
            Step::Answer(used, answer) => {
                assert!(used > 0 && used <= buffer.len() && !answer.is_empty());
                buffer.drain(..used);
                answered.extend(answer);
            }
            Step::Go(used, target) => {
                assert!(used > 0 && used <= buffer.len());
                buffer.drain(..used);
                rest.for_each(|piece| buffer.extend_from_slice(piece));
                assert!(!negotiation.outcome(Reached::Refused, None).is_empty());
                return (End::Go(target), answered, buffer);
            }
            Step::Refuse(answer, why) => {
                assert!(!why.is_empty());
                return (End::Refused(answer), answered, Vec::new());
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((piece, input)) = data.split_first() else { return };
    let (whole, cut) = (talk(input, usize::MAX), talk(input, usize::from(*piece)));
    // What is refused may be refused in other words where less of it has been seen.
    if !matches!((&whole.0, &cut.0), (End::Refused(_), End::Refused(_))) {
        assert_eq!(whole, cut);
    }
});
