//! Descriptors: two for each connection, and a third for an explicit client's through the trunk;
//! two for each pipe, one for each opening that is held, for each leg that waits for its client,
//! and for each connection of the trunk that waits for one. The limit is raised as far as it may
//! be; what does not fit is refused in words before it fails in deeds.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use xcp_linux::{Error, Result};

/// For everything else: listeners, maps, epoll, logs.
const OTHERS: u64 = 128;

/// What a proxy needs descriptors for.
#[derive(Debug, Clone, Copy)]
pub struct Needs {
    /// Descriptors of a connection.
    pub each: u64,
    /// Pipes.
    pub pipes: usize,
    /// Openings that are held at the most; as many legs wait for their clients.
    pub held: usize,
    /// Connections of the trunk that wait at the most, from here and to here.
    pub links: usize,
}

impl Needs {
    /// What is needed however many connections there are.
    fn fixed(self) -> u64 {
        (2 * self.pipes + 2 * self.held + self.links) as u64 + OTHERS
    }
}

/// Raises the limit to what is needed, or as far as is permitted.
///
/// # Errors
/// That is less than the connections wanted need, and they were asked for by number.
pub fn raise(connections: usize, asked: bool, needs: Needs) -> Result<usize> {
    let (each, fixed) = (needs.each, needs.fixed());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_of_the_trunk_is_one_descriptor_and_what_is_held_has_two() {
        let fixed = |held, links| Needs { each: 3, pipes: 10, held, links }.fixed();
        assert_eq!(fixed(0, 0), 20 + OTHERS);
        assert_eq!(fixed(0, 1056), 20 + 1056 + OTHERS);
        assert_eq!(fixed(4096, 0), 20 + 8192 + OTHERS);
    }
}
