//! `--confirm`: a diverted client is answered when the server has answered, and with what it has
//! answered. The server's side decides when: its SYNs wait in a queue of the test's.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::Duration;

use xcp_linux::namespace::Namespace;
use xcp_linux::netlink::nfqueue::{Packet, Queue, Verdict};
use xcp_linux::netlink::nftables::{Chain, OwnedTable, Place, Spelling, Term, Version};
use xcp_linux::sysctl;

use super::site::{CLIENT, Proxy, SERVER, Site, pep};
use super::traffic::{Wish, listen, receive, serve};
use super::{RATE, gateways, leftovers, one, settles, until};

const DELAY: Duration = Duration::from_millis(20);

fn confirming() -> Vec<&'static str> {
    RATE.iter().copied().chain(["--confirm"]).collect()
}

/// A connection as an application makes it: its error is TCP's own.
fn connect(client: &Namespace, to: &str, port: u16) -> std::io::Result<TcpStream> {
    let to = SocketAddr::new(to.parse().unwrap(), port);
    client.run(|| TcpStream::connect(to)).unwrap()
}

fn error(client: &Namespace, to: &str, port: u16) -> Option<i32> {
    connect(client, to, port).map(|_| ()).expect_err("no such server").raw_os_error()
}

/// A number of `pep show`'s openings.
fn openings(proxy: &Proxy, name: &str) -> u64 {
    proxy.show()["gateway"]["confirm"][name].as_u64().unwrap()
}

/// Rules for SYNs that come to the server.
fn rules(server: &Namespace, rules: Vec<Vec<Term>>) -> OwnedTable {
    let chain = Chain { name: "prerouting", place: Place::Prerouting, priority: 0, rules };
    server.run(|| OwnedTable::new("test", std::slice::from_ref(&chain))).unwrap().unwrap()
}

/// SYNs to the server, one after the other, as long as they are wanted.
struct Syns {
    queue: Queue,
    waiting: Vec<Packet>,
    _table: OwnedTable,
}

impl Syns {
    fn hold(server: &Namespace) -> Self {
        let queue = server.run(|| Queue::bind(1, 64)).unwrap().unwrap();
        let hold = |spelling| vec![vec![Term::Tcp, Term::Opens, Term::Queue(1, spelling)]];
        let with = |spelling| {
            let chain = Chain {
                name: "prerouting",
                place: Place::Prerouting,
                priority: 0,
                rules: hold(spelling),
            };
            server.run(|| OwnedTable::new("test", std::slice::from_ref(&chain))).unwrap()
        };
        let table = with(Spelling::Expression).or_else(|_| with(Spelling::Target)).unwrap();
        Self { queue, waiting: Vec::new(), _table: table }
    }

    fn next(&mut self) -> u32 {
        until("a SYN comes to the server", || {
            self.queue.read(&mut self.waiting).unwrap();
            !self.waiting.is_empty()
        });
        self.waiting.remove(0).id
    }

    fn pass(&mut self, id: u32) {
        self.queue.decide(id, Verdict::Accept).unwrap();
    }
}

#[test]
fn a_client_is_answered_when_the_server_has_answered() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let Some([near, far]) = gateways(&site, &confirming()) else { return };
    for (family, port) in [(0, 5021), (1, 5022)] {
        let server = serve(listen(&site.server, SERVER[family], port), 1);
        let mut syns = Syns::hold(&site.server);
        let before = openings(&near, "held");
        std::thread::scope(|scope| {
            let client = scope.spawn(|| connect(&site.client, SERVER[family], port));
            let first = syns.next();
            // The server is silent: both gateways hold, and SYNs that are sent again (the far
            // gateway's, the near one's, the client's) open nothing.
            let second = syns.next();
            assert!(!client.is_finished());
            for proxy in [&near, &far] {
                until("it is counted", || openings(proxy, "holding") == 1);
                assert_eq!(openings(proxy, "held"), before + 1);
                assert_eq!(openings(proxy, "confirmed"), before);
                assert_eq!(proxy.show()["connections"].as_array().unwrap().len(), 0);
            }
            syns.pass(first);
            syns.pass(second);
            drop(syns);
            let mut stream = client.join().unwrap().unwrap();
            assert_eq!(stream.local_addr().unwrap().ip().to_string(), CLIENT[family]);
            assert_eq!(
                [openings(&near, "confirmed"), openings(&far, "confirmed")],
                [before + 1; 2]
            );
            assert_eq!([openings(&near, "held"), openings(&far, "held")], [before + 1; 2]);
            // The leg that was opened is the connection's: the server accepts one only.
            let wish = Wish { seed: 21, down: 3 << 20, reset_at: u64::MAX };
            stream.write_all(&wish.bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let (read, error) = receive(&mut stream, wish.seed);
            assert!(error.is_none() && read == wish.down, "{read} {error:?}");
        });
        assert_eq!(server.join().unwrap(), [(21, 0, true)]);
    }
    // Many at once, each of them its own leg.
    let server = serve(listen(&site.server, SERVER[0], 5023), 60);
    std::thread::scope(|scope| {
        for seed in 0..60 {
            let site = &site;
            scope.spawn(move || {
                let mut stream = connect(&site.client, SERVER[0], 5023).unwrap();
                stream.write_all(&Wish { seed, down: 20_000, reset_at: u64::MAX }.bytes()).unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                assert_eq!(receive(&mut stream, seed).0, 20_000);
            });
        }
    });
    assert!(server.join().unwrap().iter().all(|(_, _, well)| *well));
    assert_eq!([openings(&near, "confirmed"), openings(&far, "confirmed")], [62, 62]);
}

#[test]
fn a_client_gets_the_error_that_tcp_would_give_it() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    // Neighbours that are not there are given up in three tries of a second each, and ICMP is sent
    // now and then: both sooner, so that nobody waits for it.
    let sooner = || {
        for name in ["net.ipv4.neigh.lan.retrans_time_ms", "net.ipv6.neigh.lan.retrans_time_ms"] {
            sysctl::write(name, "200").unwrap();
        }
    };
    site.far.run(sooner).unwrap();
    for namespace in [&site.near, &site.far, &site.server] {
        let always = || {
            for name in ["net.ipv4.icmp_ratelimit", "net.ipv6.icmp.ratelimit"] {
                sysctl::write(name, "0").unwrap();
            }
        };
        namespace.run(always).unwrap();
    }
    // What TCP says without us, to be sure that the test asks for the right thing.
    let ask = |far_lan: [&str; 2], beyond: [&str; 2]| {
        let refused = SERVER.map(|server| error(&site.client, server, 5));
        let silent_neighbours = far_lan.map(|host| error(&site.client, host, 5));
        let no_route = beyond.map(|host| error(&site.client, host, 5));
        [refused, silent_neighbours, no_route]
    };
    let expected = [
        [Some(libc::ECONNREFUSED); 2],
        [Some(libc::EHOSTUNREACH); 2],
        [Some(libc::ENETUNREACH); 2],
    ];
    // Networks that the far gateway has no route to.
    for (namespace, device, via) in [(&site.client, "c0", (1, 1)), (&site.near, "wan", (9, 2))] {
        super::site::route(namespace, device, 3, via);
    }
    assert_eq!(
        ask(["10.71.2.98", "fd71:2::98"], ["10.71.3.1", "fd71:3::1"]),
        expected,
        "without a proxy"
    );
    let Some([near, far]) = gateways(&site, &confirming()) else { return };
    assert_eq!(ask(["10.71.2.99", "fd71:2::99"], ["10.71.3.1", "fd71:3::1"]), expected);
    assert_eq!([openings(&near, "refused"), openings(&far, "refused")], [2, 2]);
    // The far gateway forwards what it has no route for, and its kernel says so.
    assert!(openings(&near, "unreachable") >= 4 && openings(&far, "unreachable") >= 2);
    // Whatever a server's firewall says.
    for (version, code, expected) in [
        (Version::V4, 0, libc::ENETUNREACH),
        (Version::V4, 2, libc::ENOPROTOOPT),
        (Version::V4, 3, libc::ECONNREFUSED),
        (Version::V4, 8, libc::ENONET),
        (Version::V4, 13, libc::EHOSTUNREACH),
        (Version::V6, 0, libc::ENETUNREACH),
        (Version::V6, 1, libc::EACCES),
        (Version::V6, 3, libc::EHOSTUNREACH),
    ] {
        let server = SERVER[usize::from(version == Version::V6)];
        let _rules = rules(
            &site.server,
            vec![vec![Term::Tcp, Term::Opens, Term::Version(version), Term::Refuse(code)]],
        );
        assert_eq!(error(&site.client, server, 5), Some(expected), "{version:?}, code {code}");
    }
    until("none is held", || openings(&near, "holding") + openings(&far, "holding") == 0);
    // Silence: the client's own time-out, and nothing is left of it.
    let syns = Syns::hold(&site.server);
    site.client.run(|| sysctl::write("net.ipv4.tcp_syn_retries", "1").unwrap()).unwrap();
    assert_eq!(error(&site.client, SERVER[0], 5), Some(libc::ETIMEDOUT));
    until("both hold it", || [openings(&near, "holding"), openings(&far, "holding")] == [1, 1]);
    until("clients that have given up are forgotten", || {
        openings(&near, "holding") + openings(&far, "holding") == 0
    });
    drop(syns);
}

#[test]
fn one_gateway_alone_confirms_too() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let Some(near) = Proxy::up(&site.near, &confirming()) else { return };
    assert_eq!(error(&site.client, SERVER[0], 5), Some(libc::ECONNREFUSED));
    assert_eq!(error(&site.client, "10.71.2.99", 5), Some(libc::EHOSTUNREACH));
    assert_eq!(error(&site.client, "fd71:2::99", 5), Some(libc::EHOSTUNREACH));
    let server = serve(listen(&site.server, SERVER[1], 5024), 1);
    let mut stream = connect(&site.client, SERVER[1], 5024).unwrap();
    stream.write_all(&Wish { seed: 3, down: 100_000, reset_at: u64::MAX }.bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(receive(&mut stream, 3).0, 100_000);
    server.join().unwrap();
    assert_eq!([openings(&near, "confirmed"), openings(&near, "refused")], [1, 1]);
    assert!(openings(&near, "unreachable") >= 2);
}

#[test]
fn however_it_ends_what_was_held_passes_and_nothing_is_left() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let before = [leftovers(&site.near), leftovers(&site.far)];
    for (port, signal) in [(5025, libc::SIGKILL), (5026, libc::SIGTERM)] {
        let Some([near, far]) = gateways(&site, &confirming()) else { return };
        assert!(
            leftovers(&site.near).iter().any(|line| line.starts_with("a queue: ")),
            "the test sees the queue"
        );
        let listener = listen(&site.server, SERVER[0], port);
        let mut syns = Syns::hold(&site.server);
        std::thread::scope(|scope| {
            let client = scope.spawn(|| connect(&site.client, SERVER[0], port));
            let _ = syns.next();
            for proxy in [&near, &far] {
                proxy.signal(signal);
            }
            until("they have cleaned up", || {
                [leftovers(&site.near), leftovers(&site.far)] == before
            });
            // From now on the client's own SYN comes, sooner or later.
            drop(syns);
            let mut stream = client.join().unwrap().unwrap();
            let (mut accepted, peer) = listener.accept().unwrap();
            assert_eq!(peer, stream.local_addr().unwrap());
            accepted.write_all(b"direct").unwrap();
            let mut text = [0; 6];
            stream.read_exact(&mut text).unwrap();
            assert_eq!(&text, b"direct");
        });
        std::mem::forget((near, far));
    }
}

/// SYNs from an address that answers nothing, each from another port.
fn flood(client: &Namespace, syns: u16) {
    // SAFETY: a socket of ours or -1.
    let socket = client
        .run(|| unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW) })
        .unwrap();
    assert!(socket >= 0);
    // SAFETY: the descriptor is new, and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: a structure of integers, for all of which zero is a value.
    let mut to: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    to.sin_family = libc::AF_INET as u16;
    to.sin_addr.s_addr = u32::from_ne_bytes([10, 71, 2, 2]);
    for port in 1..=syns {
        let mut bytes =
            vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 71, 1, 77, 10, 71, 2, 2];
        bytes.extend(port.to_be_bytes());
        bytes.extend([0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 1, 0, 0, 0, 0, 0]);
        // SAFETY: a buffer and an address that are as long as they are said to be.
        let sent = unsafe {
            let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            libc::sendto(
                socket.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                0,
                (&raw const to).cast(),
                length,
            )
        };
        assert_eq!(sent, bytes.len() as isize);
        if port % 100 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_flood_is_held_up_to_a_bound_and_others_get_through() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let Some(near) = Proxy::up(&site.near, &confirming()) else { return };
    let _silent = Syns::hold(&site.server);
    let most = u64::from(xcp_pep::confirm::MOST);
    flood(&site.client, xcp_pep::confirm::MOST as u16 + 1000);
    until("it holds what it may and gives up the oldest", || {
        openings(&near, "holding") == most && openings(&near, "given_up") > 0
    });
    // A server that refuses is still told of, in the midst of it.
    assert_eq!(error(&site.client, "fd71:2::1", 5), Some(libc::ECONNREFUSED));
    until("the flood is forgotten", || openings(&near, "holding") == 0);
}

#[test]
fn a_queue_that_somebody_has_is_told() {
    let _one = one();
    let Some(site) = Site::new(Duration::from_millis(1), 0.0) else { return };
    let before = leftovers(&site.near);
    let Ok(theirs) = site.near.run(|| Queue::bind(xcp_pep::gateway::rules::QUEUE, 1)).unwrap()
    else {
        return;
    };
    let output = pep(&site.near, "up", &["--wan", "wan", "--lan", "lan", "--confirm"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("another program has it"), "{text}");
    drop(theirs);
    settles(&site.near, &before);
}
