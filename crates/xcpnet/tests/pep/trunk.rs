//! Connections kept open between the gateways: what goes by them arrives as without, who may use
//! them, and what is when they are not there.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use xcp_linux::namespace::Namespace;
use xcp_pep::trunk::words::{self, Going, Secret};

use super::site::{CLIENT, Proxy, SERVER, Site};
use super::traffic::{Wish, connect, listen, mix, receive, send, serve};
use super::{DELAY, RATE, one, until, until_after};

pub const NEAR: &str = "10.71.9.1";
pub const FAR: &str = "10.71.9.2";
pub const SECRET: &str = "a secret of this test's alone";

pub struct Secrets(tempfile::TempDir);

impl Secrets {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.0.path().join(format!("{:x}", mix(text.len() as u64)));
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn up<'a>(&self, gateway: &'a Namespace, peer: &str, secret: &str) -> Option<Proxy<'a>> {
        self.up_with(gateway, peer, secret, &[])
    }

    pub fn up_with<'a>(
        &self,
        gateway: &'a Namespace,
        peer: &str,
        secret: &str,
        more: &[&str],
    ) -> Option<Proxy<'a>> {
        let file = self.file(secret).display().to_string();
        let own = ["--trunk", peer, "--secret-file", &file, "--trunk-warm", "8"];
        Proxy::up(gateway, &[RATE, &own, more].concat())
    }
}

pub fn trunk(proxy: &Proxy, what: &str) -> u64 {
    proxy.show()["gateway"]["trunk"][what].as_u64().unwrap()
}

fn both_up<'a>(site: &'a Site, secrets: &Secrets) -> Option<[Proxy<'a>; 2]> {
    let near = secrets.up(&site.near, FAR, SECRET)?;
    let far = secrets.up(&site.far, NEAR, SECRET)?;
    until("the trunk is up", || [&near, &far].iter().all(|proxy| trunk(proxy, "warm") == 8));
    Some([near, far])
}

#[test]
fn by_the_trunk_everything_arrives_as_without() {
    let _one = one();
    let (secrets, Some(site)) = (Secrets::new(), Site::new(DELAY, 0.001)) else { return };
    let Some([near, far]) = both_up(&site, &secrets) else { return };
    for (family, port) in [(0, 5101), (1, 5102)] {
        let listener = listen(&site.server, SERVER[family], port);
        let stream = connect(&site.client, SERVER[family], port).unwrap();
        let (mut accepted, peer) = listener.accept().unwrap();
        assert_eq!(peer, stream.local_addr().unwrap());
        assert_eq!(peer.ip().to_string(), CLIENT[family]);
        // Who speaks first is the server's own affair.
        accepted.write_all(b"hello").unwrap();
        (&stream).read_exact(&mut [0; 5]).unwrap();
        assert_eq!(near.show()["connections"][0]["by_trunk"], true);
        drop((accepted, stream));
        // Half-closed by either side first; more at once than wait.
        let wishes: Vec<(Wish, u64)> = (0..12)
            .map(|n| {
                let size = |k: u64| mix(n * 2 + k) % (1 << (mix(n + 100 + k) % 22));
                (Wish { seed: 1000 * (n + 1), down: size(0), reset_at: u64::MAX }, size(1))
            })
            .collect();
        let server = serve(listener, wishes.len());
        std::thread::scope(|scope| {
            for (wish, up) in &wishes {
                let site = &site;
                scope.spawn(move || {
                    let mut stream = connect(&site.client, SERVER[family], port).unwrap();
                    stream.write_all(&wish.bytes()).unwrap();
                    let mut out = stream.try_clone().unwrap();
                    let (seed, up) = (wish.seed + 1, *up);
                    let sender = std::thread::spawn(move || {
                        send(&mut out, seed, up).unwrap();
                        out.shutdown(Shutdown::Write).unwrap();
                    });
                    let (read, error) = receive(&mut stream, wish.seed);
                    assert!(error.is_none() && read == wish.down, "{read} {error:?}");
                    sender.join().unwrap();
                });
            }
        });
        for (seed, read, well) in server.join().unwrap() {
            let (_, up) = wishes.iter().find(|(wish, _)| wish.seed == seed).unwrap();
            assert_eq!((read, well), (*up, true));
        }
    }
    let (used, carried) = (trunk(&near, "used"), trunk(&far, "carried"));
    assert!(used >= 16 && used == carried, "{}", near.show());
    // A reset is one, and nobody who is refused is told an end.
    let server = serve(listen(&site.server, SERVER[0], 5103), 1);
    let wish = Wish { seed: 77, down: 8 << 20, reset_at: 300_000 };
    until("one waits", || trunk(&near, "warm") > 0);
    let mut stream = connect(&site.client, SERVER[0], 5103).unwrap();
    stream.write_all(&wish.bytes()).unwrap();
    let (read, error) = receive(&mut stream, wish.seed);
    assert!(read <= wish.reset_at);
    assert_eq!(error.expect("a reset").kind(), std::io::ErrorKind::ConnectionReset);
    server.join().unwrap();
    let mut stream = connect(&site.client, SERVER[0], 5).unwrap();
    let _ = stream.write_all(b"hello");
    let error = stream.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert!(trunk(&near, "used") >= used + 2);
    until("those taken are replaced", || trunk(&near, "warm") == 8);
}

/// The word of where a connection goes waits for the client's first bytes only if there are some.
#[test]
fn a_server_that_speaks_first_is_not_kept_waiting() {
    let _one = one();
    let (secrets, Some(site)) = (Secrets::new(), Site::new(DELAY, 0.0)) else {
        return;
    };
    let Some([near, _far]) = both_up(&site, &secrets) else { return };
    let listener = listen(&site.server, SERVER[0], 5104);
    let server = std::thread::spawn(move || {
        for _ in 0..5 {
            listener.accept().unwrap().0.write_all(b"welcome").unwrap();
        }
    });
    let waits = (0..5).map(|_| {
        let begin = Instant::now();
        hears(&connect(&site.client, SERVER[0], 5104).unwrap(), b"welcome");
        begin.elapsed()
    });
    // One round trip; the kernel would keep the word back for more than another one. How long they
    // take on this machine now, a port tells at which nobody listens.
    let shortest = waits.min().unwrap();
    let round_trips = (0..5).map(|_| {
        let begin = Instant::now();
        site.near.run(|| TcpStream::connect((FAR, 9)).unwrap_err()).unwrap();
        begin.elapsed()
    });
    let round_trip = round_trips.min().unwrap();
    assert!(shortest < 2 * round_trip, "{shortest:?}, round trips {round_trip:?}");
    server.join().unwrap();
    assert_eq!(trunk(&near, "used"), 5);
}

/// A connection by the near gateway's explicit listener.
pub fn ask(site: &Site, target: SocketAddr) -> TcpStream {
    let mut stream = connect(&site.client, "10.71.1.1", 1080).unwrap();
    write!(stream, "CONNECT {target} HTTP/1.1\r\n\r\n").unwrap();
    stream
}

pub fn hears(mut stream: &TcpStream, expected: &[u8]) {
    let mut heard = vec![0; expected.len()];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(heard, expected, "{}", String::from_utf8_lossy(&heard));
}

pub const GRANTED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
pub const LISTEN: &[&str] = &["--listen", "10.71.1.1:1080"];

#[test]
fn who_asks_for_it_goes_by_the_trunk_as_the_gateway() {
    let _one = one();
    let (secrets, Some(site)) = (Secrets::new(), Site::new(DELAY, 0.0)) else { return };
    super::site::route(&site.server, "s0", 9, (2, 1));
    super::site::route(&site.client, "c0", 9, (1, 1));
    let Some(near) = secrets.up_with(&site.near, FAR, SECRET, LISTEN) else { return };
    let Some(far) = secrets.up(&site.far, NEAR, SECRET) else { return };
    until("the trunk is up", || [&near, &far].iter().all(|proxy| trunk(proxy, "warm") == 8));
    for (family, own, used) in [(0, NEAR, 1), (1, "fd71:9::1", 2)] {
        let listener = listen(&site.server, SERVER[family], 5131);
        let stream = ask(&site, listener.local_addr().unwrap());
        let (accepted, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip().to_string(), own);
        hears(&stream, GRANTED);
        let shown = &near.show()["connections"][0];
        assert_eq!((&shown["kind"], &shown["by_trunk"]), (&"explicit".into(), &true.into()));
        assert_eq!((trunk(&near, "used"), trunk(&far, "carried")), (used, used));
        // The port is nobody else's at the gateway meanwhile.
        assert!(site.near.run(|| TcpListener::bind(peer)).unwrap().is_err());
        (&stream).write_all(b"hello").unwrap();
        hears(&accepted, b"hello");
        (&accepted).write_all(b"welcome").unwrap();
        accepted.shutdown(Shutdown::Write).unwrap();
        hears(&stream, b"welcome");
        assert_eq!((&stream).read(&mut [0; 1]).unwrap(), 0);
    }
    // A server that refuses, and one that is not across the link.
    let refusing = ask(&site, SocketAddr::new(SERVER[0].parse().unwrap(), 5));
    hears(&refusing, GRANTED);
    let error = (&refusing).read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let used = trunk(&near, "used");
    let here = listen(&site.client, CLIENT[0], 5132);
    let stream = ask(&site, here.local_addr().unwrap());
    hears(&stream, GRANTED);
    assert_eq!(here.accept().unwrap().1.ip().to_string(), "10.71.1.1");
    // The other gateway itself, for those who ask and for those who are diverted.
    let there = listen(&site.far, FAR, 5133);
    let stream = ask(&site, there.local_addr().unwrap());
    hears(&stream, GRANTED);
    assert_eq!(there.accept().unwrap().1.ip().to_string(), NEAR);
    let diverted = connect(&site.client, FAR, 5133).unwrap();
    (&diverted).write_all(b"hello").unwrap();
    let (accepted, peer) = there.accept().unwrap();
    assert_eq!(peer.ip().to_string(), CLIENT[0]);
    hears(&accepted, b"hello");
    assert_eq!((trunk(&near, "used"), trunk(&near, "missed")), (used, 0));
}

/// A download through whatever there is.
fn downloads(site: &Site, port: u16) {
    let server = serve(listen(&site.server, SERVER[0], port), 1);
    let mut stream = connect(&site.client, SERVER[0], port).unwrap();
    stream.write_all(&Wish { seed: 9, down: 100_000, reset_at: u64::MAX }.bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let (read, error) = receive(&mut stream, 9);
    assert!(error.is_none() && read == 100_000, "{read} {error:?}");
    server.join().unwrap();
}

#[test]
fn without_the_other_end_everything_is_as_without_a_trunk() {
    let _one = one();
    let (secrets, Some(site)) = (Secrets::new(), Site::new(DELAY, 0.0)) else { return };
    // Nobody there; another secret; none that knows of trunks.
    let Some(near) = secrets.up(&site.near, FAR, SECRET) else { return };
    until("a call has failed", || trunk(&near, "failed") > 0);
    downloads(&site, 5111);
    let Some(far) = secrets.up(&site.far, NEAR, "quite another secret of theirs") else { return };
    until("their call has failed", || trunk(&far, "failed") > 0);
    downloads(&site, 5112);
    far.down(true);
    let Some(far) = Proxy::up(&site.far, RATE) else { return };
    downloads(&site, 5113);
    assert_eq!((trunk(&near, "used"), trunk(&near, "warm")), (0, 0));
    assert!(trunk(&near, "missed") >= 3);
    far.down(true);
    // One that goes, and one that dies.
    let mut far = secrets.up(&site.far, NEAR, SECRET);
    for (port, now) in [(5114, false), (5115, true)] {
        let Some(there) = far.take() else { return };
        // Who was not answered for long calls each half a minute.
        let pause = Duration::from_secs(30);
        until_after(pause, "the trunk is up", || trunk(&near, "warm") == 8);
        downloads(&site, port);
        if now {
            there.signal(libc::SIGKILL);
            std::mem::forget(there);
        } else {
            there.down(false);
            far = secrets.up(&site.far, NEAR, SECRET);
        }
    }
    until("it is known that nobody is there", || trunk(&near, "warm") == 0);
    downloads(&site, 5116);
}

/// All calls are refused at once while nobody is there.
#[test]
fn a_gateway_that_is_restarted_has_its_trunk_again_soon() {
    let _one = one();
    let (secrets, Some(site)) = (Secrets::new(), Site::new(DELAY, 0.0)) else { return };
    let begin = Instant::now();
    let Some([near, far]) = both_up(&site, &secrets) else { return };
    let to_come_up = begin.elapsed();
    let begin = Instant::now();
    far.down(true);
    until("the calls have failed", || trunk(&near, "failed") > 0 && trunk(&near, "warm") == 0);
    let Some(_far) = secrets.up(&site.far, NEAR, SECRET) else { return };
    let away = begin.elapsed();
    until_after(2 * away, "the trunk is up again", || trunk(&near, "warm") == 8);
    // Each pause is twice the one before it, so it is no longer than the gateway was away. Then they
    // need no longer than they did at first, but for what else this machine has to do.
    let again = begin.elapsed() - away;
    assert!(again < 2 * (away + to_come_up), "{again:?}; {away:?} away, {to_come_up:?} at first");
}

/// As the near gateway, up to where a client would go.
fn call(from: &Namespace, secret: &str) -> Option<TcpStream> {
    let to = SocketAddr::new(FAR.parse().unwrap(), xcp_pep::trunk::PORT);
    let mut stream =
        from.run(|| TcpStream::connect_timeout(&to, Duration::from_secs(20))).unwrap().ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let (nonce, mut challenge) = ([3; words::NONCE], [0; words::CHALLENGE]);
    stream.write_all(&words::hello(&nonce)).ok()?;
    stream.read_exact(&mut challenge).ok()?;
    // Whoever has another secret goes on all the same.
    let ours = Secret::new(secret.as_bytes()).unwrap();
    let theirs = Secret::new(SECRET.as_bytes()).unwrap();
    assert!(theirs.proof(&nonce, &challenge).is_some());
    let answerer = *challenge.first_chunk().unwrap();
    let again = ours.challenge(&nonce, &answerer);
    stream.write_all(&ours.proof(&nonce, &again)?).ok()?;
    Some(stream)
}

/// Whether a call gets an answer to where it wants to go.
fn goes(stream: TcpStream, client: &str, server: SocketAddr) -> bool {
    let mut stream = stream;
    let client = SocketAddr::new(client.parse().unwrap(), 40_001);
    let _ = stream.write_all(&words::go(Going { ends: (client, server), mark: 0 }));
    let mut word = [0; 1];
    matches!(stream.read(&mut word), Ok(1)) && word == [words::OPEN]
}

#[test]
fn who_lacks_the_secret_or_asks_for_the_gateway_itself_gets_nowhere() {
    let _one = one();
    let (secrets, Some(site)) = (Secrets::new(), Site::new(Duration::from_millis(1), 0.0)) else {
        return;
    };
    let Some(far) = secrets.up(&site.far, NEAR, SECRET) else { return };
    let server = listen(&site.server, SERVER[0], 5121);
    let at = server.local_addr().unwrap();
    assert!(goes(call(&site.near, SECRET).unwrap(), CLIENT[0], at), "the test's own words");
    assert_eq!(server.accept().unwrap().1.ip().to_string(), CLIENT[0]);
    assert_eq!(trunk(&far, "carried"), 1);
    // Another secret; another address.
    let wrong = call(&site.near, "another secret, as long");
    assert!(wrong.is_none_or(|stream| !goes(stream, CLIENT[0], at)));
    assert!(call(&site.client, SECRET).is_none(), "only the other gateway may call");
    // The gateway's own services, and its own name.
    let own: Vec<TcpListener> =
        ["127.0.0.1", "10.71.2.1", FAR].map(|own| listen(&site.far, own, 5122)).into();
    for listener in &own {
        let at = listener.local_addr().unwrap();
        assert!(!goes(call(&site.near, SECRET).unwrap(), CLIENT[0], at), "{at}");
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "{at}");
    }
    for client in ["10.71.2.1", "127.0.0.1"] {
        assert!(!goes(call(&site.near, SECRET).unwrap(), client, at), "as {client}");
    }
    server.set_nonblocking(true).unwrap();
    assert!(server.accept().is_err());
    assert_eq!(trunk(&far, "carried"), 1);
}

/// Names of metrics in a text; a histogram's without what is of its parts.
fn names(text: &str) -> std::collections::BTreeSet<String> {
    let part = |c: char| !(c.is_ascii_lowercase() || c == '_');
    text.split(part)
        .filter(|word| word.starts_with("xcpnet_pep_"))
        .map(|word| word.trim_end_matches("_bucket").to_owned())
        .collect()
}

#[test]
fn the_dashboard_and_the_alerts_ask_for_what_there_is() {
    let _one = one();
    let (secrets, Some(site)) = (Secrets::new(), Site::new(Duration::from_millis(1), 0.0)) else {
        return;
    };
    let file = secrets.file(SECRET).display().to_string();
    let own = ["--trunk", FAR, "--secret-file", &file, "--metrics", "127.0.0.1:9998"];
    let Some(_near) = Proxy::up(&site.near, &[RATE, &own].concat()) else { return };
    let mut stream = connect(&site.near, "127.0.0.1", 9998).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut scraped = String::new();
    stream.read_to_string(&mut scraped).unwrap();
    let there = names(&scraped);
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/");
    for file in ["xcpnet-pep-alerts.yml", "xcpnet-pep-grafana.json"] {
        let asked = names(&std::fs::read_to_string(format!("{packaging}{file}")).unwrap());
        assert!(!asked.is_empty(), "{file}");
        let missing: Vec<_> = asked.difference(&there).collect();
        assert!(missing.is_empty(), "{file}: {missing:?}");
    }
}
