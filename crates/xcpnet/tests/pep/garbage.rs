//! Garbage at every door of a proxy: the port for SOCKS and HTTP, Prometheus's, and the socket that
//! `pep show` asks. It works as before afterwards, and nothing is left of it. What the parsers make
//! of bytes is `crates/xcp-pep/tests/parsers.rs` and `fuzz/`.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use xcp_linux::namespace::Namespace;
use xcp_pep::gateway::state::Place;

use crate::site::{Proxy, skipped};
use crate::traffic::{connect, listen, mix};
use crate::{one, pep, until};

const DOOR: u16 = 1080;
const METRICS: u16 = 9999;

/// Bytes that begin like something and go on like nothing.
fn garbage(seed: u64) -> Vec<u8> {
    let starts: [&[u8]; 8] = [
        b"",
        b"\x05\x01\x00",
        b"\x05\xff",
        b"\x04\x01",
        b"CONNECT ",
        b"GET /metrics",
        b"CONNECT 127.0.0.1:99999 HTTP/1.1\r\n\r\n",
        b"\x05\x01\x00\x05\x01\x00\x03\xff",
    ];
    let mut bytes = starts[(mix(seed) % 8) as usize].to_vec();
    bytes.extend((0..mix(seed + 1) % 3000).map(|n| mix(seed * 7919 + n) as u8));
    bytes
}

fn throw(mut stream: TcpStream, seed: u64) {
    // The other side may have had enough of it.
    let _ = stream.write_all(&garbage(seed));
    if seed.is_multiple_of(3) {
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read(&mut [0; 100]);
    }
}

#[test]
fn garbage_at_every_door_ends_nothing() {
    let _one = one();
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(e) => return skipped(e),
    };
    let up = pep(
        &namespace,
        "up",
        &[
            "--listen",
            &format!("127.0.0.1:{DOOR}"),
            "--metrics",
            &format!("127.0.0.1:{METRICS}"),
            "--workers",
            "1",
            "--allow-target",
            "127.0.0.0/8",
        ],
    );
    assert!(up.status.success(), "{up:?}");
    let text = String::from_utf8_lossy(&up.stdout).into_owned();
    let pid = text
        .split("process ")
        .nth(1)
        .and_then(|rest| rest.split(')').next()?.parse().ok())
        .expect("a process number");
    let proxy = Proxy { namespace: &namespace, name: "main", pid };
    let place = Place::of(&namespace, "main");
    let asked = place.socket();
    for seed in 0..300u64 {
        throw(connect(&namespace, "127.0.0.1", DOOR).unwrap(), seed);
        if seed.is_multiple_of(10) {
            throw(connect(&namespace, "127.0.0.1", METRICS).unwrap(), seed);
            if let Ok(mut stream) = UnixStream::connect(&asked) {
                let _ = stream.write_all(&garbage(seed));
            }
        }
    }
    let listener = listen(&namespace, "127.0.0.1", 5011);
    let mut client = connect(&namespace, "127.0.0.1", DOOR).unwrap();
    client.write_all(b"CONNECT 127.0.0.1:5011 HTTP/1.1\r\n\r\nhello").unwrap();
    let (mut there, _) = listener.accept().unwrap();
    let mut heard = [0; 5];
    there.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"hello");
    drop((client, there));
    until("nothing is left", || proxy.show()["connections"].as_array().is_some_and(Vec::is_empty));
    assert_eq!(proxy.show()["pid"], pid);
    let at = SocketAddr::from(([127, 0, 0, 1], METRICS));
    let mut scrape = namespace
        .run(|| TcpStream::connect_timeout(&at, Duration::from_secs(10)))
        .unwrap()
        .unwrap();
    scrape.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut told = String::new();
    scrape.read_to_string(&mut told).unwrap();
    assert!(told.starts_with("HTTP/1.1 200") && told.contains("# TYPE xcpnet_pep_"), "{told}");
    let log = std::fs::read_to_string(place.log()).unwrap();
    assert!(log.lines().count() < 10, "clients fill the log: {log}");
}
