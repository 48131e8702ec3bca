//! What is marked as urgent goes first, up to a bound, and so do the legs of who marks it.

use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use xcp_linux::namespace::Namespace;
use xcp_pep::socket;

use super::site::{CLIENT, OptionsFile, Proxy, SERVER, Site, pep};
use super::traffic::listen;
use super::trunk::{FAR, NEAR, SECRET, Secrets, trunk};
use super::{DELAY, one, until};

const EF: u8 = 46;
/// Bytes a second of the link, and of the bound of 10 % of them.
const LINK: f64 = 4e6 / 8.0;
const BOUND: f64 = LINK / 10.0;
/// What the bound lets go at once: 20 ms of the link; and one packet.
const AT_ONCE: f64 = LINK * 0.02 + 1514.0;
/// Until a flood of twice the rate has filled the queue (128 KiB, 262 ms).
const FILLS: Duration = Duration::from_millis(350);
const MEASURED: Duration = Duration::from_millis(500);
/// Packets of the call that are waited for, and how long: some may be lost.
const CALLED: usize = 11;
const LONGEST: Duration = Duration::from_millis(1400);

fn sender(server: &Namespace, port: u16, dscp: u8) -> UdpSocket {
    let socket = server.run(|| UdpSocket::bind((SERVER[0], 0))).unwrap().unwrap();
    socket.connect((CLIENT[0], port)).unwrap();
    socket::tell_mark(socket.as_fd(), dscp).unwrap();
    socket
}

/// A flood of datagrams of twice the link's rate in so many flows, and beside it a call: how long
/// its packets take, a quarter of them at most, and half. A machine that is busy with something else
/// makes some take longer, but no queue shorter. `ports`: this one and the next, which no earlier
/// flood was sent to.
fn delays(site: &Site, ports: u16, (flood, flows): (u8, usize), call: u8) -> [Duration; 2] {
    let receiver =
        |port: u16| site.client.run(|| UdpSocket::bind((CLIENT[0], port))).unwrap().unwrap();
    let (sink, ear) = (receiver(ports), receiver(ports + 1));
    ear.set_read_timeout(Some(Duration::from_millis(600))).unwrap();
    let (over, begin) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        let flooding: Vec<UdpSocket> =
            (0..flows).map(|_| sender(&site.server, ports, flood)).collect();
        let calling = sender(&site.server, ports + 1, call);
        let over = &over;
        scope.spawn(move || {
            let (mut sent, mut turns) = (0.0, flooding.iter().cycle());
            while !over.load(Ordering::Relaxed) && begin.elapsed() < LONGEST {
                while sent < begin.elapsed().as_secs_f64() * 2.0 * LINK {
                    let _ = turns.next().unwrap().send(&[0; 1200]);
                    sent += 1242.0;
                }
                sleep(Duration::from_millis(2));
            }
        });
        scope.spawn(move || {
            sleep(FILLS);
            while begin.elapsed() < FILLS + MEASURED {
                let now = begin.elapsed().as_nanos() as u64;
                let _ = calling.send(&[&now.to_le_bytes()[..], &[0; 100]].concat());
                sleep(Duration::from_millis(40));
            }
        });
        let mut took = Vec::new();
        let mut packet = [0; 200];
        while begin.elapsed() < LONGEST {
            let Ok(length) = ear.recv(&mut packet) else { continue };
            assert_eq!(length, 108);
            let sent = u64::from_le_bytes(*packet.first_chunk().unwrap());
            took.push(begin.elapsed() - Duration::from_nanos(sent));
            if took.len() == CALLED {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
        drop(sink);
        took.sort();
        assert!(took.len() > CALLED / 2, "{} packets of {CALLED} arrived", took.len());
        let found = [took[took.len() / 4], took[took.len() / 2]];
        println!("flood {flood} of {flows}, call {call}: {found:?}");
        found
    })
}

/// A connection whose client marks all that it sends; and which mark its server sees.
fn marked(site: &Site, family: usize, port: u16, dscp: u8) -> (TcpStream, TcpStream, u8) {
    let listener = listen(&site.server, SERVER[family], port);
    let to = SocketAddr::new(SERVER[family].parse::<IpAddr>().unwrap(), port);
    let stream = site
        .client
        .run(|| {
            let socket = socket::tcp(&to).unwrap();
            socket::tell_mark(socket.as_fd(), dscp).unwrap();
            let on_its_way = rustix::net::connect(&socket, &to);
            assert!(matches!(on_its_way, Ok(()) | Err(rustix::io::Errno::INPROGRESS)));
            TcpStream::from(socket)
        })
        .unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let seen = socket::mark_of(accepted.as_fd());
    (stream, accepted, seen)
}

#[test]
fn what_is_urgent_goes_first_up_to_the_bound() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let link = "wan = \"wan\"\nlan = \"lan\"\nrate = \"4mbit\"\nrtt = \"40ms\"\n";
    let file = OptionsFile::new(link);
    file.write("urgent = \"ef:10%\"\n");
    let Some(far) = Proxy::up_as(&site.far, "main", &["--config", &file.path()]) else { return };
    let urgent = |what: &str| far.show()["gateway"]["urgent"][what].as_u64().unwrap();

    let [_, usual] = delays(&site, 5321, (0, 1), 0);
    assert!(usual > Duration::from_millis(150), "the link is full: {usual:?}");
    assert_eq!(urgent("packets"), 0);
    let [first, median] = delays(&site, 5323, (0, 1), EF);
    assert!(first < Duration::from_millis(60), "{first:?}, median {median:?}");
    assert_eq!(urgent("excess"), 0);

    // Who marks everything is ordinary, and the call goes first all the same.
    let [beside, median] = delays(&site, 5325, (EF, 1), EF);
    assert!(beside < Duration::from_millis(60), "{beside:?}, median {median:?}");
    // Everybody does: as much goes first as may, and no more.
    let (begin, before) = (Instant::now(), urgent("bytes"));
    delays(&site, 5327, (EF, 200), EF);
    let went = (urgent("bytes") - before) as f64;
    let most = begin.elapsed().as_secs_f64() * BOUND + AT_ONCE;
    println!("{went} bytes went first, at most {most} may");
    assert!((AT_ONCE..most).contains(&went), "{went} bytes of at most {most}");
    assert!(urgent("excess_bytes") as f64 > most, "{}", far.show());

    // Without the option, which goes while the proxy works, a mark means nothing.
    file.write("");
    let told = pep(&site.far, "reload", &[]);
    assert!(String::from_utf8_lossy(&told.stdout).contains("changed: urgent"), "{told:?}");
    assert!(far.show()["gateway"]["urgent"].is_null());
    let [_, without] = delays(&site, 5329, (0, 1), EF);
    assert!(without > Duration::from_millis(150), "{without:?}");
    file.write("urgent = \"voice\"\n");
    let refused = pep(&site.far, "reload", &[]);
    assert!(!refused.status.success() && !refused.stderr.is_empty(), "{refused:?}");
}

#[test]
fn the_legs_of_who_is_urgent_are_on_either_side_and_by_the_trunk() {
    let _one = one();
    let (secrets, Some(site)) = (Secrets::new(), Site::new(Duration::from_millis(1), 0.0)) else {
        return;
    };
    let more = &["--urgent", "ef,cs5:20%"];
    let Some(near) = secrets.up_with(&site.near, FAR, SECRET, more) else { return };
    let sees = |family: usize, port: u16, dscp: u8| {
        let (client, server, seen) = marked(&site, family, port, dscp);
        let urgent = near.show()["connections"][0]["urgent"].as_bool().unwrap();
        drop((client, server));
        until("it is over", || near.show()["connections"].as_array().unwrap().is_empty());
        (seen, urgent)
    };
    // Without the other gateway it is the long leg itself that the server sees.
    assert_eq!(sees(0, 5311, EF), (EF, true));
    assert_eq!(sees(1, 5312, EF), (EF, true));
    assert_eq!(sees(0, 5313, 34), (0, false), "a mark that nobody named");
    assert_eq!(sees(0, 5314, 0), (0, false));
    let Some(far) = secrets.up_with(&site.far, NEAR, SECRET, more) else { return };
    until("the trunk is up", || [&near, &far].iter().all(|proxy| trunk(proxy, "warm") == 8));
    for (family, port) in [(0, 5315), (1, 5316)] {
        let (client, server, seen) = marked(&site, family, port, EF);
        assert_eq!(seen, EF);
        for proxy in [&near, &far] {
            let connection = &proxy.show()["connections"][0];
            assert!(connection["urgent"] == true && connection["by_trunk"] == true, "{connection}");
        }
        drop((client, server));
        until("it is over", || {
            [&near, &far].iter().all(|p| p.show()["connections"].as_array().unwrap().is_empty())
        });
    }
}
