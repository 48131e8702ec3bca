//! Bounds: as many connections as may be, segments that a link does not take, clients that say
//! nothing, and those that may not ask.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use xcp_linux::namespace::Namespace;

use super::site::{CLIENT, Proxy, SERVER, Site, number, pep};
use super::traffic::{Wish, attend, connect, listen, receive, send};
use super::{DELAY, gateways, one, until};

#[test]
fn where_there_are_too_many_the_rest_pass_untouched() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let metrics = ["--connections", "2", "--metrics", "127.0.0.1:9999"];
    let Some(near) = Proxy::up(&site.near, &metrics) else { return };
    let listener = listen(&site.server, SERVER[0], 5051);
    let open = || {
        let stream = connect(&site.client, SERVER[0], 5051).unwrap();
        let (mut there, peer) = listener.accept().unwrap();
        assert_eq!(peer, stream.local_addr().unwrap());
        there.write_all(b"hello").unwrap();
        let mut heard = [0; 5];
        (&stream).read_exact(&mut heard).unwrap();
        (stream, there)
    };
    let count = || near.show()["connections"].as_array().unwrap().len();
    let held: Vec<_> = (0..2).map(|_| open()).collect();
    assert_eq!(count(), 2);
    // One that comes before the rules have changed may be refused.
    until("more are not diverted", || {
        let Ok(mut stream) = connect(&site.client, SERVER[0], 5051) else { return false };
        let _ = stream.write_all(b"x");
        stream.set_nonblocking(false).unwrap();
        listener.set_nonblocking(true).unwrap();
        let start = std::time::Instant::now();
        let mut there = None;
        while there.is_none() && start.elapsed().as_secs() < 5 {
            there = listener.accept().ok();
        }
        listener.set_nonblocking(false).unwrap();
        there.is_some() && count() == 2
    });
    let passing = open();
    assert_eq!(count(), 2);
    drop((held, passing));
    until("there is room again", || {
        let _pair = open();
        count() > 0
    });
}

/// Frames with more than a packet of 1400 bytes are lost without a word, either way.
fn black_hole(site: &Site) {
    for device in ["w0", "w1"] {
        let (mut netlink, index) = number(&site.wire, device);
        netlink.set_mtu(index, 1400).unwrap();
    }
}

fn crosses(site: &Site, port: u16) {
    let listener = listen(&site.server, SERVER[0], port);
    let server = std::thread::spawn(move || attend(listener.accept().unwrap().0));
    let mut stream = connect(&site.client, SERVER[0], port).unwrap();
    stream.write_all(&Wish { seed: 3, down: 300_000, reset_at: u64::MAX }.bytes()).unwrap();
    send(&mut stream, 4, 300_000).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let (read, error) = receive(&mut stream, 3);
    assert!(error.is_none() && read == 300_000, "{read} {error:?}");
    assert_eq!(server.join().unwrap(), (3, 300_000, true));
}

#[test]
fn a_link_that_loses_large_packets_without_a_word_is_crossed() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    black_hole(&site);
    // Found out by trying; then said.
    for (port, more) in [(5052, &[][..]), (5053, &["--mss", "1300"])] {
        let Some([near, far]) = gateways(&site, more) else { return };
        crosses(&site, port);
        near.down(true);
        far.down(true);
    }
}

/// The client sends nothing more before it is answered, so nobody hears of what is left.
#[test]
fn a_request_that_does_not_fit_into_a_syn_arrives_whole() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    for gateway in [&site.near, &site.far] {
        let (mut netlink, index) = number(gateway, "wan");
        netlink.set_mtu(index, 1280).unwrap();
    }
    let Some([near, _far]) = gateways(&site, &[]) else { return };
    let requests = [1160, 1181, 1200, 1219, 1220, 1221, 2000, 3000];
    for (family, port) in [(0, 5056), (1, 5057)] {
        let listener = listen(&site.server, SERVER[family], port);
        let server = std::thread::spawn(move || {
            for request in requests {
                let (mut stream, _) = listener.accept().unwrap();
                stream.read_exact(&mut vec![0; request]).unwrap();
                stream.write_all(b"well").unwrap();
            }
        });
        for request in requests {
            let mut stream = connect(&site.client, SERVER[family], port).unwrap();
            stream.write_all(&vec![7; request]).unwrap();
            let answer = stream.read_exact(&mut [0; 4]);
            assert!(answer.is_ok(), "{request} bytes: {answer:?}; {}", near.show());
        }
        server.join().unwrap();
    }
}

#[test]
fn the_gateway_itself_is_not_reached_and_strangers_are_not_answered() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let ask = |target: &str| -> std::io::Result<String> {
        let mut stream = connect(&site.client, "10.71.1.1", 1080)?;
        write!(stream, "CONNECT {target} HTTP/1.1\r\n\r\n")?;
        let mut said = [0; 12];
        stream.read_exact(&mut said)?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    };
    // The gateway's own address is the source of what it asks for.
    super::site::route(&site.server, "s0", 9, (2, 1));
    let _secret = listen(&site.near, "127.0.0.1", 5054);
    let server = listen(&site.server, SERVER[0], 5055);
    let own = [
        "127.0.0.1:5054",
        "10.71.1.1:5054",
        "10.71.9.1:5054",
        "[::1]:5054",
        "[fd71:9::1]:5054",
        "0.0.0.0:5054",
    ];
    let devices = ["--wan", "wan", "--lan", "lan", "--workers", "1"];
    let up = pep(&site.near, "up", &[&devices[..], &["--listen", "0.0.0.0:1080"]].concat());
    if !up.status.success() {
        return super::skipped(String::from_utf8_lossy(&up.stderr));
    }
    // Ends what is there when this fails.
    let _guard = Proxy { namespace: &site.near, name: "main", pid: 0 };
    let warned = String::from_utf8_lossy(&up.stderr).into_owned();
    assert!(warned.contains("0.0.0.0:1080") && warned.contains("--allow"), "{warned}");
    for target in own {
        assert_eq!(ask(target).unwrap(), "HTTP/1.1 403", "{target}");
    }
    assert_eq!(ask(&format!("{}:5055", SERVER[0])).unwrap(), "HTTP/1.1 200");
    assert!(server.accept().is_ok());
    assert!(pep(&site.near, "down", &["--now"]).status.success());
    // Somebody else may ask; what is allowed is reached.
    for (allow, target, answer) in [
        ("10.71.99.0/24", "127.0.0.1:5054", None),
        (CLIENT[0], "127.0.0.1:5054", Some("HTTP/1.1 200")),
        (CLIENT[0], "10.71.1.1:5054", Some("HTTP/1.1 403")),
    ] {
        let more =
            ["--listen", "10.71.1.1:1080", "--allow", allow, "--allow-target", "127.0.0.0/8"];
        let up = pep(&site.near, "up", &[&devices[..], &more].concat());
        assert!(up.status.success() && up.stderr.is_empty(), "{up:?}");
        assert_eq!(ask(target).ok().as_deref(), answer, "{allow} {target}");
        assert!(pep(&site.near, "down", &["--now"]).status.success());
    }
}

#[test]
fn who_says_nothing_keeps_no_scrape_waiting() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let up = pep(
        &site.near,
        "up",
        &["--listen", "127.0.0.1:1080", "--metrics", "127.0.0.1:9999", "--workers", "1"],
    );
    assert!(up.status.success(), "{up:?}");
    let _guard = Proxy { namespace: &site.near, name: "main", pid: 0 };
    let silent: Vec<TcpStream> =
        (0..60).map(|_| connect(&site.near, "127.0.0.1", 9999).unwrap()).collect();
    let begin = std::time::Instant::now();
    let mut scrape = connect(&site.near, "127.0.0.1", 9999).unwrap();
    scrape.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut said = String::new();
    scrape.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 200") && said.contains("xcpnet_pep_full_total 0"), "{said}");
    // Two seconds for each of those before it would be two minutes.
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
    // They are not kept for ever.
    for mut stream in silent {
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        assert!(stream.read(&mut [0; 1]).map_or(true, |read| read == 0));
    }
    assert!(pep(&site.near, "down", &["--now"]).status.success());
}

/// Where somebody listens at IPv4's loopback address.
fn listening(namespace: &Namespace) -> Vec<u16> {
    let sockets = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap());
    let port = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let port = words.get(1)?.strip_prefix("0100007F:")?;
        (*words.get(3)? == "0A").then(|| u16::from_str_radix(port, 16).unwrap())
    };
    sockets.unwrap().lines().filter_map(port).collect()
}

/// Whoever may open sockets on the gateway finds the listeners for diverted connections.
#[test]
fn a_connection_to_a_listener_itself_leads_nowhere() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let metrics = ["--connections", "50", "--metrics", "10.71.1.1:9999"];
    let Some(near) = Proxy::up(&site.near, &metrics) else { return };
    let ports = listening(&site.near);
    assert_eq!(ports.len(), 2, "{ports:?}");
    for port in ports {
        // The reset may be there before connect(2) is seen to have succeeded.
        let stream = connect(&site.near, "127.0.0.1", port);
        let error = stream.and_then(|mut stream| stream.read(&mut [0; 1])).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    let mut scrape = connect(&site.near, "10.71.1.1", 9999).unwrap();
    scrape.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut said = String::new();
    scrape.read_to_string(&mut said).unwrap();
    for count in ["accepted", "loops"] {
        assert!(said.contains(&format!("xcpnet_pep_{count}_total 2\n")), "{said}");
    }
    assert_eq!(near.show()["connections"], serde_json::json!([]));
}
