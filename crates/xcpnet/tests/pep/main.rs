//! `xcpnet pep` between two gateways and a long link, in network namespaces: what of client and
//! server arrives at the other, and what is left behind. Needs root; says so where it is not there.

mod confirm;
mod early;
mod exact;
mod garbage;
mod limits;
mod link;
mod look;
mod loss;
mod owner;
mod rates;
mod reload;
mod robust;
mod sealed;
mod share;
mod site;
mod traffic;
mod trunk;
mod unit;
mod up;
mod urgent;
mod worker;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use site::{CLIENT, OptionsFile, Proxy, SERVER, Site, pep, skipped};
use traffic::{Wish, connect, listen, mix, receive, send, serve};
use xcp_linux::namespace::Namespace;
use xcp_linux::netlink::nftables::OwnedTable;
use xcp_linux::{cgroup, sysctl};
use xcp_pep::gateway::rules::TABLE;

const DELAY: Duration = Duration::from_millis(20);
const RATE: &[&str] = &["--rate", "200mbit", "--rtt", "40ms"];

/// Control groups are the machine's: one at a time.
static ONE: Mutex<()> = Mutex::new(());

fn one() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Settings, rules and groups that a proxy may leave behind in a namespace.
fn leftovers(namespace: &Namespace) -> Vec<String> {
    let mut found: Vec<String> = namespace
        .run(|| {
            let mut found = Vec::new();
            // The kernel refuses a second table of the name.
            found.extend(OwnedTable::new(TABLE, &[]).err().map(|e| e.to_string()));
            for name in [
                "net.ipv4.tcp_fastopen",
                "net.ipv4.tcp_tw_reuse",
                "net.core.somaxconn",
                "net.ipv4.tcp_retries2",
                "net.ipv4.tcp_mtu_probing",
            ] {
                found.push(format!("{name} = {}", sysctl::read(name).unwrap()));
            }
            for words in [
                &["rule"][..],
                &["-6", "rule"],
                &["route", "show", "table", "all"],
                &["-6", "route", "show", "table", "all"],
            ] {
                let output = Command::new("ip").args(words).output();
                found.extend(
                    output
                        .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
                        .unwrap_or_default()
                        .lines()
                        .map(str::to_owned),
                );
            }
            let queues = std::fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue")
                .unwrap_or_default();
            found.extend(queues.lines().map(|line| format!("a queue: {line}")));
            let output = Command::new("tc").args(["qdisc", "show"]).output();
            found.extend(
                output
                    .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
                    .unwrap_or_default()
                    .lines()
                    .map(str::to_owned),
            );
            // Addresses of links come a second after these; those of IPv6 have local routes when
            // the kernel has asked whether somebody has them, whenever that is.
            found.retain(|line| {
                !["fe80:", "ff00::", "local fd", "anycast fd"]
                    .iter()
                    .any(|word| line.contains(word))
            });
            found
        })
        .unwrap();
    let place = xcp_pep::gateway::state::Place::of(namespace, "main");
    found.extend(place.path().exists().then(|| place.path().display().to_string()));
    let groups = cgroup::current()
        .map(|at| at.read_dir().unwrap().flatten().map(|e| e.path()).collect::<Vec<_>>())
        .unwrap_or_default();
    // Of proxies that are no more.
    let dead = |g: &String| {
        g.rsplit_once("xcpnet-pep-").is_some_and(|(_, pid)| !Path::new("/proc").join(pid).exists())
    };
    found.extend(groups.iter().map(|g| g.display().to_string()).filter(dead));
    found
}

/// Waits until a namespace is as it was: what has ended may still be dying, its control group last.
fn settles(namespace: &Namespace, expected: &[String]) {
    let start = Instant::now();
    while leftovers(namespace) != expected && start.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(50));
    }
    assert_eq!(leftovers(namespace), expected);
}

fn gateways<'a>(site: &'a Site, more: &[&str]) -> Option<[Proxy<'a>; 2]> {
    Some([Proxy::up(&site.near, more)?, Proxy::up(&site.far, more)?])
}

/// A value of `show`.
fn agreed(proxy: &Proxy) -> u64 {
    proxy.show()["gateway"]["endpoint"]["agreed"].as_u64().unwrap()
}

/// Waits until something is so.
fn until(what: &str, is: impl FnMut() -> bool) {
    until_after(Duration::ZERO, what, is);
}

/// The same of what may begin only after some time.
fn until_after(time: Duration, what: &str, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < time + Duration::from_secs(30), "{what}");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn each_end_sees_the_others_address_and_exactly_its_bytes() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.001) else { return };
    let Some([near, far]) = gateways(&site, RATE) else { return };
    for (family, port) in [(0, 5001), (1, 5002)] {
        let listener = listen(&site.server, SERVER[family], port);
        let stream = connect(&site.client, SERVER[family], port).unwrap();
        let (accepted, peer) = listener.accept().unwrap();
        assert_eq!(peer, stream.local_addr().unwrap());
        assert_eq!(peer.ip().to_string(), CLIENT[family]);
        assert_eq!(accepted.local_addr().unwrap(), stream.peer_addr().unwrap());
        drop((accepted, stream));
        // Both ways at once, half-closed by either side first, sizes from nothing to some
        // megabytes.
        let wishes: Vec<(Wish, u64)> = (0..12)
            .map(|n| {
                let size = |k: u64| mix(n * 2 + k) % (1 << (mix(n + 100 + k) % 23));
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
                    let sender = std::thread::spawn({
                        let (seed, up) = (wish.seed + 1, *up);
                        move || {
                            send(&mut out, seed, up).unwrap();
                            out.shutdown(Shutdown::Write).unwrap();
                        }
                    });
                    let (read, error) = receive(&mut stream, wish.seed);
                    assert!(error.is_none(), "{error:?}");
                    assert_eq!(read, wish.down);
                    sender.join().unwrap();
                });
            }
        });
        for (seed, read, well) in server.join().unwrap() {
            let (_, up) = wishes.iter().find(|(wish, _)| wish.seed == seed).unwrap();
            assert_eq!((read, well), (*up, true));
        }
    }
    assert!(agreed(&near) >= 26 && agreed(&far) >= 26, "{} {}", near.show(), far.show());
}

#[test]
fn a_reset_arrives_as_one_and_what_came_before_is_a_prefix() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let Some(_proxies) = gateways(&site, RATE) else { return };
    // By the server.
    let listener = listen(&site.server, SERVER[0], 5003);
    let server = serve(listener, 4);
    for n in 0..4u64 {
        let wish = Wish { seed: 77 + 10 * n, down: 8 << 20, reset_at: mix(n) % (1 << 20) };
        let mut stream = connect(&site.client, SERVER[0], 5003).unwrap();
        stream.write_all(&wish.bytes()).unwrap();
        let (read, error) = receive(&mut stream, wish.seed);
        assert!(read <= wish.reset_at);
        assert_eq!(error.expect("a reset").kind(), std::io::ErrorKind::ConnectionReset);
    }
    server.join().unwrap();
    // By the client.
    let listener = listen(&site.server, SERVER[0], 5004);
    let server = serve(listener, 2);
    for n in 0..2u64 {
        let wish = Wish { seed: 99 + 10 * n, down: 100 << 20, reset_at: u64::MAX };
        let mut stream = connect(&site.client, SERVER[0], 5004).unwrap();
        stream.write_all(&wish.bytes()).unwrap();
        let mut some = vec![0; 100_000];
        stream.read_exact(&mut some).unwrap();
        traffic::rustix_linger(&stream);
    }
    assert!(server.join().unwrap().iter().all(|(_, _, well)| !well));
}

#[test]
fn a_server_that_refuses_is_a_reset_and_nobody_waits() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let Some([near, _far]) = gateways(&site, RATE) else { return };
    let mut stream = connect(&site.client, SERVER[0], 5).unwrap();
    let _ = stream.write_all(b"hello");
    let error = stream.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    until("nothing is left of it", || {
        near.show()["connections"].as_array().is_some_and(Vec::is_empty)
    });
}

#[test]
fn a_server_that_is_not_there_is_a_reset_before_its_syns_are_given_up() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let Some([near, _far]) = gateways(&site, RATE) else { return };
    // The kernel asks three times, a second apart.
    for version in ["ipv4", "ipv6"] {
        let name = format!("net.{version}.neigh.lan.retrans_time_ms");
        site.far.run(|| sysctl::write(&name, "100").unwrap()).unwrap();
    }
    for absent in ["10.71.2.77", "fd71:2::77"] {
        let begin = Instant::now();
        let mut stream = connect(&site.client, absent, 5).unwrap();
        let _ = stream.write_all(b"hello");
        stream.shutdown(Shutdown::Write).unwrap();
        let error = stream.read(&mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    }
    until("nothing is left of it", || {
        near.show()["connections"].as_array().is_some_and(Vec::is_empty)
    });
}

#[test]
fn down_lets_connections_finish_and_leaves_nothing() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let before = [leftovers(&site.near), leftovers(&site.far)];
    let Some([near, far]) = gateways(&site, RATE) else { return };
    assert_ne!(leftovers(&site.near), before[0], "the test sees what a proxy sets up");
    let server = serve(listen(&site.server, SERVER[0], 5005), 2);
    let mut stream = connect(&site.client, SERVER[0], 5005).unwrap();
    let wish = Wish { seed: 5, down: 3 << 20, reset_at: u64::MAX };
    stream.write_all(&wish.bytes()).unwrap();
    until("it is carried", || near.show()["connections"].as_array().is_some_and(|c| c.len() == 1));
    near.signal(libc::SIGTERM);
    until("it drains", || {
        pep(near.namespace, "show", &["--json"])
            .stdout
            .windows(15)
            .any(|w| w == b"\"draining\":true,")
            || !near.show()["draining"].is_null()
    });
    // New ones pass untouched.
    let mut other = connect(&site.client, SERVER[0], 5005).unwrap();
    other.write_all(&Wish { seed: 6, down: 1000, reset_at: u64::MAX }.bytes()).unwrap();
    other.shutdown(Shutdown::Write).unwrap();
    assert_eq!(receive(&mut other, 6).0, 1000);
    stream.shutdown(Shutdown::Write).unwrap();
    let (read, error) = receive(&mut stream, wish.seed);
    assert!(error.is_none() && read == wish.down, "{read} {error:?}");
    server.join().unwrap();
    near.down(false);
    far.down(false);
    assert_eq!([leftovers(&site.near), leftovers(&site.far)], before);
}

/// A connection from a port that the client chooses.
fn connect_from(client: &Namespace, port: u16, to: &str, to_port: u16) -> std::net::TcpStream {
    use std::os::fd::FromRawFd as _;
    let name = |address: &str, port: u16| -> libc::sockaddr_in {
        // SAFETY: a structure of integers, for all of which zero is a value.
        let mut name: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        name.sin_family = libc::AF_INET as u16;
        name.sin_port = port.to_be();
        name.sin_addr.s_addr =
            u32::from_ne_bytes(address.parse::<std::net::Ipv4Addr>().unwrap().octets());
        name
    };
    let (from, to, yes) = (name(CLIENT[0], port), name(to, to_port), 1i32);
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    client
        .run(|| {
            // SAFETY: a socket of ours; addresses and an int that outlive the calls.
            unsafe {
                let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
                assert!(socket >= 0);
                let stream = std::net::TcpStream::from_raw_fd(socket);
                assert_eq!(
                    libc::setsockopt(
                        socket,
                        libc::SOL_SOCKET,
                        libc::SO_REUSEADDR,
                        (&raw const yes).cast(),
                        4
                    ),
                    0
                );
                assert_eq!(libc::bind(socket, (&raw const from).cast(), length), 0);
                let done = libc::connect(socket, (&raw const to).cast(), length);
                assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
                stream
            }
        })
        .unwrap()
}

#[test]
fn a_port_can_be_used_again_when_the_proxy_has_gone() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    site.client.run(|| sysctl::write("net.ipv4.tcp_syn_retries", "3").unwrap()).unwrap();
    for (port, signal) in [(5010, libc::SIGTERM), (5011, libc::SIGKILL)] {
        let Some([near, far]) = gateways(&site, RATE) else { return };
        let before = leftovers(&site.near);
        let server = serve(listen(&site.server, SERVER[0], port), 2);
        for seed in 0..2 {
            // The server ends first, so that it and both gateways keep the connection.
            let mut stream = connect_from(&site.client, 40_000, SERVER[0], port);
            stream.write_all(&Wish { seed, down: 1000, reset_at: u64::MAX }.bytes()).unwrap();
            assert_eq!(receive(&mut stream, seed).0, 1000);
            drop(stream);
            if seed == 0 {
                until("it is over", || {
                    [&near, &far]
                        .iter()
                        .all(|proxy| proxy.show()["connections"].as_array().unwrap().is_empty())
                });
                near.signal(signal);
                far.signal(signal);
                until("the keepers have cleaned up", || {
                    [&site.near, &site.far].iter().all(|gateway| {
                        !xcp_pep::gateway::state::Place::of(gateway, "main").path().exists()
                    })
                });
                assert_ne!(leftovers(&site.near), before);
            }
        }
        assert!(server.join().unwrap().iter().all(|(_, _, well)| *well));
        std::mem::forget((near, far));
    }
}

/// Its resets wait in the shaper's queue behind everything else.
#[test]
fn killed_on_a_full_link_it_resets_what_it_carried() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let Some([_near, far]) = gateways(&site, &["--rate", "2mbit", "--rtt", "40ms"]) else { return };
    let listener = listen(&site.server, SERVER[0], 5012);
    // Nothing is on its way to the server, so that only a reset tells that it has gone.
    let held: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = connect(&site.client, SERVER[0], 5012).unwrap();
            stream.write_all(b"x").unwrap();
            let (mut there, _) = listener.accept().unwrap();
            there.read_exact(&mut [0; 1]).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            (stream, there)
        })
        .collect();
    // Nearly as many datagrams as the queue holds (128 KiB, half a second).
    let flood = site.server.run(|| UdpSocket::bind((SERVER[0], 0))).unwrap().unwrap();
    for _ in 0..80 {
        flood.send_to(&[0; 1400], (CLIENT[0], 5012)).unwrap();
    }
    far.signal(libc::SIGKILL);
    for (mut stream, _there) in held {
        let error = stream.read(&mut [0; 1]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    }
}

#[test]
fn killed_it_leaves_nothing_and_traffic_flows() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let before = leftovers(&site.near);
    let Some([near, far]) = gateways(&site, RATE) else { return };
    let server = serve(listen(&site.server, SERVER[0], 5006), 2);
    let mut stream = connect(&site.client, SERVER[0], 5006).unwrap();
    let wish = Wish { seed: 8, down: 1 << 30, reset_at: u64::MAX };
    stream.write_all(&wish.bytes()).unwrap();
    let mut some = vec![0; 300_000];
    stream.read_exact(&mut some).unwrap();
    near.signal(libc::SIGKILL);
    // Broken, not complete.
    let error = loop {
        match stream.read(&mut some) {
            Ok(0) => panic!("a truncated transfer looks complete"),
            Ok(_) => {}
            Err(e) => break e,
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let mut other = connect(&site.client, SERVER[0], 5006).unwrap();
    other.write_all(&Wish { seed: 9, down: 100_000, reset_at: u64::MAX }.bytes()).unwrap();
    other.shutdown(Shutdown::Write).unwrap();
    assert_eq!(receive(&mut other, 9).0, 100_000);
    until("the keeper has cleaned up", || leftovers(&site.near) == before);
    std::mem::forget(near);
    far.down(true);
    server.join().unwrap();
    // And one can be up again.
    let Some(again) = Proxy::up(&site.near, RATE) else { panic!("not up again") };
    again.down(true);
}

#[test]
fn what_is_excluded_passes_untouched_and_reload_changes_it() {
    let _one = one();
    let Some(site) = Site::new(Duration::from_millis(1), 0.0) else { return };
    let file = OptionsFile::new("");
    file.write("exclude = [\"port 5007\"]\n");
    let Some(near) = Proxy::up(&site.near, &["--config", &file.path()]) else { return };
    let listener = listen(&site.server, SERVER[0], 5007);
    let stream = connect(&site.client, SERVER[0], 5007).unwrap();
    assert_eq!(near.show()["connections"].as_array().unwrap().len(), 0);
    file.write("exclude = [\"10.99.0.0/16\"]\n");
    assert!(pep(near.namespace, "reload", &[]).status.success());
    // The connection of before stays as it is; new ones are carried.
    until("new ones are carried", || {
        let fresh = connect(&site.client, SERVER[0], 5007).unwrap();
        sleep(Duration::from_millis(50));
        let carried = !near.show()["connections"].as_array().unwrap().is_empty();
        drop(fresh);
        carried
    });
    file.write("exclude = [\"nonsense\"]\n");
    assert!(!pep(near.namespace, "reload", &[]).status.success());
    assert!(near.show()["pid"].is_number(), "a bad file ends nothing");
    let (mut accepted, _) = listener.accept().unwrap();
    accepted.write_all(b"still here").unwrap();
    let mut text = [0; 10];
    (&stream).read_exact(&mut text).unwrap();
    assert_eq!(&text, b"still here");
}

#[test]
fn what_cannot_be_is_refused_in_words_and_leaves_nothing() {
    let _one = one();
    let Some(site) = Site::new(Duration::from_millis(1), 0.0) else { return };
    let before = leftovers(&site.near);
    let refused_by = |command: &str, arguments: &[&str], words: &[&str]| {
        let output = pep(&site.near, command, arguments);
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(
            !output.status.success() && words.iter().all(|word| text.contains(word)),
            "{command} {arguments:?}: {text}"
        );
    };
    // Whoever asks before is told the same.
    let refused = |arguments: &[&str], words: &[&str]| {
        refused_by("check", arguments, words);
        refused_by("up", arguments, words);
    };
    refused(&[], &["--wan", "--listen"]);
    refused(&["--wan", "sat0", "--lan", "lan"], &["no device \"sat0\"", "lan, wan"]);
    refused(&["--wan", "wan"], &["--lan"]);
    refused(&["--wan", "lo", "--lan", "lan"], &["--wan: lo is the loopback device"]);
    refused(&["--wan", "wan", "--lan", "lan", "--allow", "10.0.0.0/8"], &["allow", "--listen"]);
    refused(&["--wan", "wan", "--lan", "wan"], &["both"]);
    refused(&["--wan", "wan", "--lan", "lan", "--lan", "lan"], &["--lan", "lan", "twice"]);
    for (option, value, bound) in [
        ("rate", "0mbit", "8kbit"),
        ("rate-in", "8bit", "8kbit"),
        ("rtt", "0s", "100us"),
        ("rtt", "1000h", "60s"),
        ("workers", "0", "256"),
        ("connections", "0", "1"),
        ("idle", "1ns", "1s"),
        ("keepalive", "1ns", "1s"),
        ("rto-max", "1ms", "120s"),
        ("initial-window", "65536", "65535"),
        ("trunk-warm", "0", "512"),
        ("memory", "0", "1mib"),
        ("held", "1gib", "1mib"),
    ] {
        let given = ["--wan", "wan", "--lan", "lan", &format!("--{option}"), value];
        refused(&given, &[option, value, "is not between", bound]);
    }
    refused(&["--wan", "wan", "--lan", "lan", "--exclude", "x"], &["exclude", "10.0.0.0/8"]);
    refused(&["--wan", "wan", "--lan", "lan", "--user", "nobody-at-all"], &["no user"]);
    refused(
        &["--wan", "wan", "--lan", "lan", "--law", "faster", "--rate", "1mbit"],
        &["law", "faster", "robust"],
    );
    let robust = ["--wan", "wan", "--lan", "lan", "--rate", "1mbit", "--law", "robust"];
    for more in [["--urgent", "ef:10%"], ["--share", "address"]] {
        refused(&[&robust[..], &more].concat(), &[&more[0][2..], "robust"]);
    }
    refused(&["--listen", "127.0.0.1:1080", "--law", "robust"], &["law", "--wan"]);
    refused(&["--listen", "10.71.99.99:1080"], &["not an address of this machine"]);
    refused(
        &["--listen", "127.0.0.1:1080", "--connections", "100000000"],
        &["descriptors", "--connections"],
    );
    refused(&["--listen", "127.0.0.1:1080", "--log", "foo"], &["log", "foo", "debug"]);
    refused(
        &["--wan", "wan", "--lan", "lan", "--fallback", "nosuch"],
        &["nosuch", "fallback", "cubic"],
    );
    refused(
        &["--listen", "127.0.0.1:1080", "--metrics", "10.71.99.99:1"],
        &["--metrics", "10.71.99.99"],
    );
    site.near.run(|| sysctl::write("net.ipv4.ip_forward", "0").unwrap()).unwrap();
    let here = |words| format!("nsenter --net={} {words}", Site::path(&site.near));
    refused(
        &["--wan", "wan", "--lan", "lan"],
        &["does not forward", &here("sysctl -w net.ipv4.ip_forward=1")],
    );
    site.near.run(|| sysctl::write("net.ipv4.ip_forward", "1").unwrap()).unwrap();
    let busy = listen(&site.near, "127.0.0.1", 5009);
    refused(&["--listen", "127.0.0.1:5009"], &["another program has the port"]);
    drop(busy);
    let theirs = site.near.run(|| OwnedTable::new(TABLE, &[]).unwrap()).unwrap();
    refused_by("up", &["--wan", "wan", "--lan", "lan"], &[TABLE, "already"]);
    drop(theirs);
    let foreign = site
        .near
        .run(|| {
            Command::new("tc")
                .args("qdisc add dev wan root tbf rate 1mbit burst 5kb limit 10kb".split(' '))
                .status()
        })
        .unwrap();
    if foreign.is_ok_and(|status| status.success()) {
        refused(
            &["--wan", "wan", "--lan", "lan", "--rate", "1mbit"],
            &["somebody set up", &here("tc qdisc del dev wan root")],
        );
        let _ = site
            .near
            .run(|| Command::new("tc").args("qdisc del dev wan root".split(' ')).status())
            .unwrap();
    } else {
        xcp_skip::skipped!("tc", "a shaper of somebody else's");
    }
    let rule = site
        .near
        .run(|| Command::new("ip").args("rule add fwmark 0x58435045 lookup 7".split(' ')).status())
        .unwrap();
    if rule.is_ok_and(|status| status.success()) {
        refused(&["--wan", "wan", "--lan", "lan"], &["somebody else's routing rule", "lookup 7"]);
        let _ = site
            .near
            .run(|| {
                Command::new("ip").args("rule del fwmark 0x58435045 lookup 7".split(' ')).status()
            })
            .unwrap();
    }
    settles(&site.near, &before);
    // Twice in the same place.
    if let Some(first) = Proxy::up(&site.near, &[]) {
        refused(&["--wan", "wan", "--lan", "lan"], &["already running here", "pep down"]);
        first.down(true);
    }
    settles(&site.near, &before);
}
