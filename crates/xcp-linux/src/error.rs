//! What went wrong with the kernel, where, and what can be done about it: never a bare errno.

use std::fmt;

/// A failure, as a user reads it.
#[derive(Debug)]
pub struct Error {
    what: String,
    remedy: Option<String>,
}

/// What this crate's functions return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error that says what failed.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: None }
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

    /// A failure with the kernel's reason, and where that is known the remedy.
    #[must_use]
    pub fn because(what: impl fmt::Display, reason: &(dyn std::error::Error + 'static)) -> Self {
        // libbpf-rs tells the causes, too, when asked for the long form.
        let error = Self::new(format!("{what}: {reason:#}"));
        match errno(reason) {
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

impl std::error::Error for Error {}

/// It tells its own remedy.
impl From<crate::netlink::Error> for Error {
    fn from(error: crate::netlink::Error) -> Self {
        Self::new(error.to_string())
    }
}
