//! The network's settings under `/proc/sys/net`. Those of a namespace are seen and changed by the
//! threads that are in it: call these within [`Namespace::run`](crate::namespace::Namespace::run).

use std::fs;
use std::io;
use std::path::PathBuf;

/// Reads a setting, e.g. `net.ipv4.tcp_rmem`. As with sysctl(8), a name with a slash in it is
/// divided by slashes, so that a device's name may have a dot: `net/ipv4/conf/eth0.100/forwarding`.
pub fn read(name: &str) -> io::Result<String> {
    let path = path(name)?;
    let text = fs::read_to_string(path).map_err(|e| told("read", name, e))?;
    Ok(text.trim().to_owned())
}

/// Reads a setting that is one or several numbers.
pub fn numbers(name: &str) -> io::Result<Vec<u64>> {
    let text = read(name)?;
    text.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().map_err(|_| {
        let text = format!("{name} is \"{text}\", where numbers were expected");
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

/// Writes a network setting (sysctl) of the current namespace.
pub fn write(name: &str, value: &str) -> io::Result<()> {
    fs::write(path(name)?, value).map_err(|e| told(&format!("write \"{value}\" to"), name, e))
}

fn path(name: &str) -> io::Result<PathBuf> {
    let separator = if name.contains('/') { '/' } else { '.' };
    let parts: Vec<&str> = name.split(separator).collect();
    if parts.len() < 2
        || parts[0] != "net"
        || parts.iter().any(|part| part.is_empty() || *part == "." || *part == "..")
    {
        let text =
            format!("\"{name}\" is not the name of a network setting; one is net.ipv4.tcp_rmem");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(PathBuf::from("/proc/sys").join(parts.join("/")))
}

fn told(what: &str, name: &str, error: io::Error) -> io::Error {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "; this kernel or this namespace has no such setting",
        io::ErrorKind::PermissionDenied => "; this needs root",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot {what} {name}: {error}{remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_into_proc_sys_net_and_nowhere_else() {
        assert_eq!(
            path("net.ipv4.tcp_rmem").unwrap(),
            PathBuf::from("/proc/sys/net/ipv4/tcp_rmem")
        );
        assert_eq!(
            path("net/ipv4/conf/eth0.1/mtu").unwrap(),
            PathBuf::from("/proc/sys/net/ipv4/conf/eth0.1/mtu")
        );
        for name in [
            "",
            "net",
            "kernel.hostname",
            "net/../kernel/hostname",
            "net..ipv4",
            "/net/ipv4",
            "net/./x",
        ] {
            assert!(path(name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = read("net.ipv4.no_such_setting").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("net.ipv4.no_such_setting"), "{error}");
    }
}
