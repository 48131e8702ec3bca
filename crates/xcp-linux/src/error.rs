//! What went wrong with the kernel, where, and what can be done about it: never a bare errno.

use std::fmt;

/// An error behind another one.
type Reason = Box<dyn std::error::Error + Send + Sync>;

/// A failure, as a user reads it: what it displays includes the reason, which is its source too.
#[derive(Debug)]
pub struct Error {
    what: String,
    remedy: Option<String>,
    reason: Option<Reason>,
}

/// What this crate's functions return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error that says what failed.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: None, reason: None }
    }

    /// What the user can do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// What failed, without the remedy.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    fn keeping(self, reason: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { reason: Some(Box::new(reason)), ..self }
    }

    /// A failure in the words of another error.
    #[must_use]
    pub fn told_by(reason: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::new(reason.to_string()).keeping(reason)
    }

    /// What failed, with a reason that says itself what can be done about it.
    #[must_use]
    pub fn around(
        what: impl fmt::Display,
        reason: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::new(format!("{what}: {reason}")).keeping(reason)
    }

    /// A failure with the kernel's reason, and where that is known the remedy.
    #[must_use]
    pub fn because(
        what: impl fmt::Display,
        reason: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        // libbpf-rs tells the causes, too, when asked for the long form.
        let text = format!("{what}: {reason:#}");
        let number = errno(&reason);
        let error = Self::new(text).keeping(reason);
        match number {
            Some(libc::EPERM | libc::EACCES) if !is_root() => {
                error.remedy("run it as root, e.g. with sudo")
            }
            Some(
                libc::EPERM
                | libc::EACCES
                | libc::EINVAL
                | libc::ENOTSUP
                | libc::E2BIG
                | libc::ESRCH,
            ) => error.remedy("`xcpnet doctor` says what this kernel lacks"),
            _ => error,
        }
    }
}

/// Whether the process has root's user id.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The errno behind an error. libbpf-rs keeps it in the text only.
fn errno(reason: &(dyn std::error::Error + 'static)) -> Option<i32> {
    if let Some(number) =
        reason.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error)
    {
        return Some(number);
    }
    let text = reason.to_string();
    if let Some((_, rest)) = text.rsplit_once("(os error ") {
        return rest.strip_suffix(')')?.parse().ok();
    }
    errno(reason.source()?)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(remedy) = &self.remedy {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.reason.as_deref()?)
    }
}

/// It tells its own remedy.
impl From<crate::netlink::Error> for Error {
    fn from(error: crate::netlink::Error) -> Self {
        Self::told_by(error)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::io;

    use super::Error;

    #[test]
    fn an_error_displays_its_reason_and_keeps_it() {
        let reason = || io::Error::from_raw_os_error(libc::ENOENT);
        for error in [
            Error::because("cannot look", reason()),
            Error::around("cannot look", reason()),
            Error::told_by(reason()),
        ] {
            assert!(error.to_string().ends_with(&reason().to_string()), "{error}");
            let source = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
            assert_eq!(source.raw_os_error(), Some(libc::ENOENT));
        }
        assert!(Error::new("no").source().is_none());
    }

    #[test]
    fn what_a_kernel_lacks_is_found_through_several_layers() {
        let inner = Error::because("inner", io::Error::from_raw_os_error(libc::ENOTSUP));
        let outer = Error::around("outer", inner);
        let last = outer.source().unwrap().source().unwrap().downcast_ref::<io::Error>().unwrap();
        assert_eq!(last.raw_os_error(), Some(libc::ENOTSUP));
        assert_eq!(outer.to_string().matches("xcpnet doctor").count(), 1, "{outer}");
    }
}
