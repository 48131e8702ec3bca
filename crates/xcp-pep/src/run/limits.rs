//! Descriptors: two for each connection, and a third for an explicit client's through the trunk;
//! two for each pipe, one for each opening that is held, and for each leg that waits for its
//! client. The limit is raised as far as it may be; what does not fit is refused in words before it
//! fails in deeds.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use xcp_linux::{Error, Result};

/// For everything else: listeners, maps, epoll, logs.
const OTHERS: u64 = 128;

/// Raises the limit to what is needed, or as far as is permitted; `each`: what a connection needs.
///
/// # Errors
/// That is less than the connections wanted need, and they were asked for by number.
pub fn raise(connections: usize, each: u64, asked: bool, pipes: usize, held: u32) -> Result<usize> {
    let fixed = 2 * pipes as u64 + 2 * u64::from(held) + OTHERS;
    let needed = each * connections as u64 + fixed;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|now| now < needed) {
        let wanted = Rlimit {
            current: Some(needed),
            maximum: Some(maximum.map_or(needed, |m| m.max(needed))),
        };
        if setrlimit(Resource::Nofile, wanted).is_err() {
            let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
        }
    }
    let now = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let fit = usize::try_from(now.saturating_sub(fixed) / each).unwrap_or(usize::MAX);
    if fit >= connections {
        return Ok(connections);
    }
    if asked || fit < 16 {
        return Err(Error::new(format!(
            "{connections} connections need {needed} file descriptors, \
            and this process may have {now}"
        ))
        .remedy("raise the limit (ulimit -n, LimitNOFILE= in the unit), or use --connections N"));
    }
    Ok(fit)
}
