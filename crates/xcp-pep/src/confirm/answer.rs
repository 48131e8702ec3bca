//! What a client is told whose server cannot be reached: what makes its own TCP fail with the error
//! that ours failed with. Linux turns ICMP's codes into errors (`icmp_err_convert` of
//! net/ipv4/icmp.c, `tab_unreach` of net/ipv6/icmp.c); this is the way back.

use std::io;

/// What the client is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A reset: connection refused.
    Reset,
    /// ICMP: the destination cannot be reached, with this code.
    Unreachable(u8),
    /// Nothing, as from a server that is not there: the client's own time-out.
    Silence,
}

/// ICMP's codes (RFC 792, 1122, 1812) with Linux's errors; of several codes for an error the first
/// is sent.
const CODES_4: [(u8, i32); 15] = [
    (0, libc::ENETUNREACH),
    (1, libc::EHOSTUNREACH),
    (2, libc::ENOPROTOOPT),
    (3, libc::ECONNREFUSED),
    (5, libc::EOPNOTSUPP),
    (6, libc::ENETUNREACH),
    (7, libc::EHOSTDOWN),
    (8, libc::ENONET),
    (9, libc::ENETUNREACH),
    (10, libc::EHOSTUNREACH),
    (11, libc::ENETUNREACH),
    (12, libc::EHOSTUNREACH),
    (13, libc::EHOSTUNREACH),
    (14, libc::EHOSTUNREACH),
    (15, libc::EHOSTUNREACH),
];

/// Those of ICMPv6 (RFC 4443). The kernel sends address unreachable (3), not beyond scope (2), of a
/// neighbour that is silent.
const CODES_6: [(u8, i32); 7] = [
    (0, libc::ENETUNREACH),
    (1, libc::EACCES),
    (3, libc::EHOSTUNREACH),
    (2, libc::EHOSTUNREACH),
    (4, libc::ECONNREFUSED),
    (5, libc::EACCES),
    (6, libc::EACCES),
];

fn codes(is_v4: bool) -> &'static [(u8, i32)] {
    if is_v4 { &CODES_4 } else { &CODES_6 }
}

/// Codes that are sent, so that there are rules for them.
pub fn sent(is_v4: bool) -> impl Iterator<Item = u8> {
    let all = codes(is_v4);
    all.iter()
        .filter(move |(code, error)| of_error(*error, is_v4) == Answer::Unreachable(*code))
        .map(|(code, _)| *code)
}

/// To a client whose server's leg failed so.
#[must_use]
pub fn of(why: &io::Error, is_v4: bool) -> Answer {
    why.raw_os_error().map_or(Answer::Silence, |error| of_error(error, is_v4))
}

fn of_error(error: i32, is_v4: bool) -> Answer {
    // A server that has answered and resets at once has not been of use to anybody yet.
    if matches!(error, libc::ECONNREFUSED | libc::ECONNRESET) {
        return Answer::Reset;
    }
    // A route that forbids (`ip route add prohibit`): routers say so by code 13, which is the same
    // error to a client as 1.
    if is_v4 && error == libc::EACCES {
        return Answer::Unreachable(1);
    }
    codes(is_v4)
        .iter()
        .find(|(_, known)| *known == error)
        .map_or(Answer::Silence, |(code, _)| Answer::Unreachable(*code))
}

/// What a socket's error would be to which this code came.
#[must_use]
pub fn error_of(code: u8, is_v4: bool) -> Option<io::Error> {
    codes(is_v4)
        .iter()
        .find(|(known, _)| *known == code)
        .map(|(_, error)| io::Error::from_raw_os_error(*error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_sees_the_error_that_our_leg_saw() {
        for is_v4 in [true, false] {
            for code in 0..=u8::MAX {
                let Some(error) = error_of(code, is_v4) else { continue };
                let seen = match of(&error, is_v4) {
                    Answer::Reset => libc::ECONNREFUSED,
                    Answer::Unreachable(code) => {
                        error_of(code, is_v4).unwrap().raw_os_error().unwrap()
                    }
                    Answer::Silence => panic!("code {code}"),
                };
                assert_eq!(Some(seen), error.raw_os_error(), "code {code}");
            }
        }
    }

    #[test]
    fn every_answer_has_a_rule_and_time_outs_have_none() {
        for is_v4 in [true, false] {
            for error in 0..200 {
                let answer = of(&io::Error::from_raw_os_error(error), is_v4);
                if let Answer::Unreachable(code) = answer {
                    assert!(sent(is_v4).any(|sent| sent == code), "{error}");
                }
            }
            for error in [libc::ETIMEDOUT, libc::EMFILE, libc::EADDRNOTAVAIL] {
                assert_eq!(of(&io::Error::from_raw_os_error(error), is_v4), Answer::Silence);
            }
        }
    }
}
