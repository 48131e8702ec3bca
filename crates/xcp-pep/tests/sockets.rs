//! Workers with real sockets on the loopback device, as an explicit proxy; no root needed.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use xcp_pep::listen::access::{Access, Network};
use xcp_pep::settings::{Kind, Settings};
use xcp_pep::shared::Shared;
use xcp_pep::socket;
use xcp_pep::worker::names::{Asker, THREADS};
use xcp_pep::worker::{Crew, Listener, Order, Worker, listener};

struct Proxy {
    shared: Arc<Shared>,
    crew: Crew,
    address: SocketAddr,
}

impl Proxy {
    fn new(mut settings: Settings, memory: usize) -> Self {
        // Everything here is at loopback.
        settings.access.targets.push(Network::new([127, 0, 0, 0].into(), 8));
        Self::strict(settings, memory)
    }

    fn strict(settings: Settings, memory: usize) -> Self {
        Self::with(settings, memory, Asker::start().unwrap())
    }

    fn with(settings: Settings, memory: usize, names: Asker) -> Self {
        let taken =
            listener("127.0.0.1:0".parse().unwrap(), Kind::Explicit, &settings, false, false)
                .unwrap();
        let address = taken.address;
        let shared = Arc::new(Shared::new(settings));
        let worker = Worker::new(shared.clone(), vec![taken], names, memory).unwrap();
        Self { shared, crew: Crew::start(vec![worker], None, None).unwrap(), address }
    }

    /// A connection through it, by SOCKS.
    fn connect(&self, to: SocketAddr) -> TcpStream {
        let SocketAddr::V4(to) = to else { panic!("IPv4") };
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut request = vec![5, 1, 0, 5, 1, 0, 1];
        request.extend(to.ip().octets());
        request.extend(to.port().to_be_bytes());
        stream.write_all(&request).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..4], [5, 0, 5, 0]);
        stream
    }

    fn until(&self, what: &str, is: impl Fn(&Shared) -> bool) {
        let start = Instant::now();
        while !is(&self.shared) {
            assert!(start.elapsed() < Duration::from_secs(30), "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.crew.stop();
    }
}

fn server() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn noise(seed: u8, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0] ^ (at >> 7) as u8 ^ seed)
        .collect()
}

#[test]
fn a_slow_reader_stops_the_fast_writer_and_little_is_held() {
    let settings = Settings::default();
    let held = settings.held;
    let proxy = Proxy::new(settings, 1 << 20);
    let (listener, address) = server();
    let client = proxy.connect(address);
    let (mut reader, _) = listener.accept().unwrap();
    client.set_nonblocking(true).unwrap();
    let data = noise(1, 256 << 20);
    let mut sent = 0;
    // Until nothing has gone for a while.
    let mut last = Instant::now();
    while last.elapsed() < Duration::from_millis(500) {
        match (&client).write(&data[sent..]) {
            Ok(n) => {
                sent += n;
                last = Instant::now();
            }
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5))
            }
            Err(e) => panic!("{e}"),
        }
    }
    assert!(sent < data.len(), "the writer was never stopped");
    let view = &proxy.crew.show()[0];
    assert!(view.held <= held, "{} bytes held", view.held);
    client.set_nonblocking(false).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    reader.read_to_end(&mut got).unwrap();
    assert!(got == data[..sent]);
}

/// RFC 9293 §3.8.6.1: a peer that answers with a window of zero is there. The kernel, told for how
/// long to wait for a peer, ends such a connection all the same.
#[test]
fn a_reader_that_pauses_for_longer_than_silence_is_borne_is_waited_for() {
    let mut settings = Settings::default();
    settings.common.give_up_ms = 2000;
    let proxy = Proxy::new(settings, 1 << 20);
    let (listener, address) = server();
    let client = proxy.connect(address);
    let (mut reader, _) = listener.accept().unwrap();
    let data = noise(1, 64 << 20);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (&client).write_all(&data).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
        });
        std::thread::sleep(Duration::from_secs(8));
        let mut got = Vec::new();
        reader.read_to_end(&mut got).unwrap();
        assert!(got == data, "{} of {} bytes", got.len(), data.len());
    });
}

/// But not for ever by nobody: where both sides have ended, the kernel keeps no such connection,
/// either (tcp_orphan_retries).
#[test]
fn a_reader_that_nobody_waits_for_is_given_up() {
    let mut settings = Settings::default();
    settings.common.give_up_ms = 2000;
    let proxy = Proxy::new(settings, 1 << 20);
    let (listener, address) = server();
    // What is accepted inherits it: less room than there are data.
    rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 4096).unwrap();
    let client = proxy.connect(address);
    let (reader, _) = listener.accept().unwrap();
    // Open, a reader is waited for; so it is when the other side has gone and it has not.
    (&client).write_all(&noise(1, 100_000)).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(proxy.crew.show().len(), 1);
    reader.shutdown(Shutdown::Write).unwrap();
    proxy.until("it is given up", |_| proxy.crew.show().is_empty());
}

#[test]
fn without_a_pipe_left_everything_still_arrives() {
    // One pipe for twenty connections whose readers are slow.
    let proxy = Proxy::new(Settings::default(), 1);
    let (listener, address) = server();
    std::thread::scope(|scope| {
        for number in 0..20u8 {
            let mut client = proxy.connect(address);
            let (mut reader, _) = listener.accept().unwrap();
            let data = noise(number, 3_000_000 + usize::from(number) * 77_777);
            let expected = data.clone();
            scope.spawn(move || {
                client.write_all(&data).unwrap();
                client.shutdown(Shutdown::Write).unwrap();
                let mut back = Vec::new();
                client.read_to_end(&mut back).unwrap();
                assert_eq!(back, b"done");
            });
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(300));
                let mut got = Vec::new();
                reader.read_to_end(&mut got).unwrap();
                assert!(got == expected);
                reader.write_all(b"done").unwrap();
            });
        }
    });
    proxy.until("all have ended", |shared| {
        shared.metrics.finished.get() == 20 && shared.active.load(Ordering::Relaxed) == 0
    });
}

#[test]
fn an_urgent_byte_arrives_as_one_and_in_its_place() {
    let proxy = Proxy::new(Settings::default(), 1 << 20);
    let (listener, address) = server();
    let mut client = proxy.connect(address);
    let (mut reader, _) = listener.accept().unwrap();
    // All of it fits into the reader's buffer: an urgent byte can be read out of its place only
    // before what follows it.
    let before = noise(3, 50_000);
    client.write_all(&before).unwrap();
    send(&client, b"!", SendFlags::OOB).unwrap();
    client.write_all(b"after").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut fds = [PollFd::new(&reader, PollFlags::PRI)];
    assert_eq!(
        poll(&mut fds, Some(&Timespec { tv_sec: 20, tv_nsec: 0 })).unwrap(),
        1,
        "nothing urgent came"
    );
    let mut urgent = [0u8; 1];
    assert_eq!(recv(&reader, &mut urgent, RecvFlags::OOB).unwrap().0, 1);
    assert_eq!(&urgent, b"!");
    let mut got = Vec::new();
    reader.read_to_end(&mut got).unwrap();
    let mut expected = before;
    expected.extend(b"after");
    assert!(got == expected, "{} bytes instead of {}", got.len(), expected.len());
}

#[test]
fn halves_close_one_after_the_other_and_resets_are_resets() {
    let proxy = Proxy::new(Settings::default(), 1 << 20);
    let (listener, address) = server();
    let mut client = proxy.connect(address);
    let (mut there, _) = listener.accept().unwrap();
    // The server ends first and still hears.
    there.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    client.write_all(b"I still talk").unwrap();
    let mut heard = [0; 12];
    there.read_exact(&mut heard).unwrap();
    drop(client);
    assert_eq!(there.read(&mut [0; 1]).unwrap(), 0);
    proxy.until("it has ended well", |shared| shared.metrics.finished.get() == 1);
    // A reset from either side.
    for by_client in [true, false] {
        let client = proxy.connect(address);
        let (there, _) = listener.accept().unwrap();
        let (resetting, mut other) = if by_client { (client, there) } else { (there, client) };
        socket::reset_on_close(resetting.as_fd(), true).unwrap();
        drop(resetting);
        other.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert_eq!(
            other.read(&mut [0; 1]).unwrap_err().kind(),
            std::io::ErrorKind::ConnectionReset
        );
    }
    assert_eq!(proxy.shared.metrics.reset.get(), 2);
}

#[test]
fn what_cannot_be_reached_is_told_and_silence_is_not_waited_for() {
    let settings = Settings { greeting_timeout: Duration::from_millis(200), ..Settings::default() };
    let proxy = Proxy::new(settings, 1 << 20);
    let closed = server().1;
    for (request, answer) in [
        (
            format!("CONNECT {closed} HTTP/1.1\r\n\r\n"),
            "HTTP/1.1 502 Bad Gateway (connection refused)",
        ),
        (
            "CONNECT name.invalid:80 HTTP/1.1\r\n\r\n".to_owned(),
            "HTTP/1.1 502 Bad Gateway (unknown name)",
        ),
        (format!("CONNECT {} HTTP/1.1\r\n\r\n", proxy.address), "HTTP/1.1 200"),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.1 405"),
        ("\u{1}nonsense".to_owned(), ""),
        (String::new(), ""),
    ] {
        let mut client = TcpStream::connect(proxy.address).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        if answer.ends_with("200") {
            // To itself: the inner connection's request is refused there.
            let inner = format!("CONNECT {closed} HTTP/1.1\r\n\r\n");
            client.write_all(inner.as_bytes()).unwrap();
        }
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        assert!(said.starts_with(answer), "{request:?}: {said:?}");
        if answer.ends_with("200") {
            assert!(said.contains("403 Forbidden"), "{said:?}");
        }
    }
    assert_eq!(proxy.shared.metrics.loops.get(), 1);
    proxy.until("nothing is left", |shared| shared.active.load(Ordering::Relaxed) == 0);
}

/// Whoever the kernel has accepted before the listener is closed is carried, however many they are.
#[test]
fn a_drain_takes_all_that_wait() {
    let mut settings = Settings::default();
    settings.access.targets.push(Network::new([127, 0, 0, 0].into(), 8));
    let taken = listener("127.0.0.1:0".parse().unwrap(), Kind::Explicit, &settings, false, false);
    let taken = taken.unwrap();
    let address = taken.address;
    let shared = Arc::new(Shared::new(settings));
    let names = Asker::start().unwrap();
    let worker = Worker::new(shared.clone(), vec![taken], names, 1).unwrap();
    // More than are accepted in a row, twice.
    let waiting: Vec<_> = (0..150).map(|_| TcpStream::connect(address).unwrap()).collect();
    // It is the first that the worker hears.
    worker.handle().tell(Order::Drain);
    let proxy = Proxy { shared, crew: Crew::start(vec![worker], None, None).unwrap(), address };
    assert_eq!(proxy.crew.show().len(), waiting.len());
}

/// Whoever controls the proxy is told of a worker that has ended without being told to, and why.
#[test]
fn a_worker_that_is_no_more_is_known() {
    // No connection is so patient: its deadline cannot be told.
    let proxy =
        Proxy::new(Settings { greeting_timeout: Duration::MAX, ..Settings::default() }, 1 << 20);
    let bell = proxy.shared.bell.as_ref().unwrap();
    assert_eq!(proxy.shared.failure(), None);
    let _client = TcpStream::connect(proxy.address).unwrap();
    let mut fds = [PollFd::new(bell, PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&Timespec { tv_sec: 30, tv_nsec: 0 })).unwrap(), 1, "no bell");
    let why = proxy.shared.failure().expect("a reason");
    assert!(why.starts_with("worker 0 panicked: ") && why.contains("instant"), "{why}");
    // A listener at which nothing can be waited for.
    let socket = Arc::new(OwnedFd::from(std::fs::File::open("/dev/null").unwrap()));
    let listener = Listener { socket, kind: Kind::Explicit, address: proxy.address };
    let shared = Arc::new(Shared::new(Settings::default()));
    let worker = Worker::new(shared.clone(), vec![listener], Asker::start().unwrap(), 1).unwrap();
    Crew::start(vec![worker], None, None).unwrap().stop();
    let why = shared.failure().expect("a reason");
    assert!(why.starts_with("worker 0 has failed: "), "{why}");
}

/// A resolver that knows no name and does not say so before it is allowed to.
struct Silent {
    asked: Arc<AtomicUsize>,
    may_answer: Arc<AtomicBool>,
}

impl Silent {
    fn start() -> (Self, Asker) {
        let (asked, may_answer) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let asker = Asker::start_with({
            let (asked, may_answer) = (asked.clone(), may_answer.clone());
            move |_, _| {
                asked.fetch_add(1, Ordering::Relaxed);
                while !may_answer.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                None
            }
        });
        (Self { asked, may_answer }, asker.unwrap())
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.may_answer.store(true, Ordering::Relaxed);
    }
}

fn ask_for_a_name(proxy: &Proxy) -> TcpStream {
    let mut client = TcpStream::connect(proxy.address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    client.write_all(b"CONNECT name.invalid:80 HTTP/1.1\r\n\r\n").unwrap();
    client
}

#[test]
fn a_name_that_is_not_resolved_is_given_up_in_time() {
    let (_silent, asker) = Silent::start();
    let settings = Settings { connect_timeout: Duration::from_millis(200), ..Settings::default() };
    let proxy = Proxy::with(settings, 1 << 20, asker);
    let mut said = String::new();
    ask_for_a_name(&proxy).read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 504"), "{said:?}");
}

/// A server that does not answer: its queue is full, so that the kernel drops what comes.
struct Mute {
    address: SocketAddr,
    _listener: OwnedFd,
    _waiting: Vec<OwnedFd>,
}

impl Mute {
    fn new() -> Self {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let listener = socket::tcp(&any).unwrap();
        rustix::net::bind(&listener, &any).unwrap();
        // Room for one; the second is one too many.
        rustix::net::listen(&listener, 0).unwrap();
        let address = socket::local(listener.as_fd()).unwrap();
        let waiting = (0..2)
            .map(|_| {
                let socket = socket::tcp(&any).unwrap();
                let _ = rustix::net::connect(&socket, &address);
                socket
            })
            .collect();
        Self { address, _listener: listener, _waiting: waiting }
    }
}

#[test]
fn an_address_that_does_not_answer_is_given_up_in_time() {
    let mute = Mute::new();
    let settings = Settings { connect_timeout: Duration::from_millis(200), ..Settings::default() };
    let proxy = Proxy::new(settings, 1 << 20);
    let mut client = TcpStream::connect(proxy.address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(client, "CONNECT {} HTTP/1.1\r\n\r\n", mute.address).unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 504"), "{said:?}");
}

#[test]
fn names_whose_askers_have_gone_keep_nobody_waiting() {
    let (silent, asker) = Silent::start();
    let proxy = Proxy::with(Settings::default(), 1 << 20, asker);
    let gone: Vec<_> = (0..10 * THREADS).map(|_| ask_for_a_name(&proxy)).collect();
    proxy.until("all have asked", |shared| {
        shared.active.load(Ordering::Relaxed) == gone.len()
            && silent.asked.load(Ordering::Relaxed) == THREADS
    });
    drop(gone);
    proxy.until("they are known to have gone", |shared| shared.active.load(Ordering::Relaxed) == 0);
    let mut client = ask_for_a_name(&proxy);
    silent.may_answer.store(true, Ordering::Relaxed);
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 502"), "{said:?}");
    assert_eq!(silent.asked.load(Ordering::Relaxed), THREADS + 1);
}

#[test]
fn at_most_so_many_at_a_time_and_the_others_are_refused_at_once() {
    let proxy = Proxy::new(Settings { connections: 3, ..Settings::default() }, 1 << 20);
    let (listener, address) = server();
    let there: Vec<_> =
        (0..3).map(|_| (proxy.connect(address), listener.accept().unwrap())).collect();
    for refused in 1..=4 {
        let mut client = TcpStream::connect(proxy.address).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        // Nothing is written: a write would take the error that is looked for.
        assert_eq!(
            client.read(&mut [0; 1]).unwrap_err().kind(),
            std::io::ErrorKind::ConnectionReset
        );
        assert_eq!(proxy.shared.metrics.full.get(), refused);
    }
    assert!(proxy.shared.full.load(Ordering::Relaxed), "who controls it is told");
    drop(there);
    proxy.until("there is room", |shared| shared.active.load(Ordering::Relaxed) == 0);
    let _again = proxy.connect(address);
    assert_eq!(proxy.shared.metrics.accepted.get(), 4);
}

#[test]
fn this_machine_is_not_reached_and_strangers_are_not_heard() {
    let proxy = Proxy::strict(Settings::default(), 1 << 20);
    let (listener, address) = server();
    listener.set_nonblocking(true).unwrap();
    for host in ["127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"] {
        let mut client = TcpStream::connect(proxy.address).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        write!(client, "CONNECT {host}:{} HTTP/1.1\r\n\r\n", address.port()).unwrap();
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 403"), "{host}: {said:?}");
    }
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(proxy.shared.metrics.forbidden.get(), 4);
    let access =
        Access { clients: vec![Network::new([10, 0, 0, 0].into(), 8)], ..Access::default() };
    let proxy = Proxy::strict(Settings { access, ..Settings::default() }, 1 << 20);
    let mut client = TcpStream::connect(proxy.address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert_eq!(client.read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(proxy.shared.metrics.strangers.get(), 1);
}

#[test]
fn an_idle_connection_is_reset_only_where_that_is_asked_for() {
    let proxy = Proxy::new(
        Settings { idle_timeout: Duration::from_millis(150), ..Settings::default() },
        1 << 20,
    );
    let (listener, address) = server();
    let mut client = proxy.connect(address);
    let (mut there, _) = listener.accept().unwrap();
    assert_eq!(client.read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(there.read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}
