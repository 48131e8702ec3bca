//! Real connections of the kernel's TCP through the endpoint and a router: host S, router R, host
//! D, each in a network namespace.

mod beginnings;
mod changed_mind;
mod classes;
mod forged;
mod liars;
mod neighbours;
mod outage;
mod signed;
mod site;
mod super_packets;

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use site::{Site, connections, endpoint};
use xcp_linux::endpoint::{
    Agreement, Ask, Connection, Endpoint, EndpointConfig, Give, NoRoom, Shown,
};
use xcp_linux::namespace::Namespace;
use xcp_linux::qdisc::Limit;
use xcp_linux::rehearsal::Mischief;
use xcp_linux::router::Hook;

const MEGABYTE: usize = 1 << 20;

/// A payload whose every byte tells where it belongs.
fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

/// What a transfer showed.
struct Transfer {
    /// The connecting side's, at the end.
    sender: Option<Connection>,
    /// The accepting side's.
    receiver: Option<Connection>,
    /// The congestion control of the connecting side at the end.
    congestion: String,
}

/// How a transfer goes.
struct Plan<'a> {
    six: bool,
    bytes: usize,
    /// Sent back at the same time.
    back: usize,
    ask: Option<Ask>,
    /// Both ends are asked, before anything is said.
    endpoint: &'a Endpoint,
    listener: Option<TcpListener>,
}

impl<'a> Plan<'a> {
    fn new(endpoint: &'a Endpoint) -> Self {
        Self { six: false, bytes: 2 * MEGABYTE, back: 0, ask: None, endpoint, listener: None }
    }
}

fn congestion(socket: &TcpStream) -> String {
    rustix::net::sockopt::tcp_congestion(socket.as_fd()).unwrap_or_default()
}

fn listen(site: &Site, six: bool) -> TcpListener {
    site.d.run(|| TcpListener::bind(SocketAddr::new(site.address(six), 0)).unwrap()).unwrap()
}

/// A connection from S whose ends have asked for the robust sender, and the accepting end; neither
/// waits for the other longer than this.
fn robust_connection(
    site: &Site,
    endpoint: &Endpoint,
    patience: Duration,
) -> (TcpStream, TcpStream) {
    let listener = listen(site, false);
    let ask = Ask { robust: true, ..Ask::default() };
    endpoint.ask(listener.as_fd(), &ask).unwrap();
    rustix::net::sockopt::set_tcp_congestion(&listener, endpoint.name()).unwrap();
    let to = listener.local_addr().unwrap();
    let socket = site.s.run(|| site::connect_asking(to, endpoint, &ask)).unwrap();
    let (other, _) = listener.accept().unwrap();
    // So that what fails ends, too.
    other.set_read_timeout(Some(patience)).unwrap();
    socket.set_write_timeout(Some(patience)).unwrap();
    (socket, other)
}

/// Sends from S to D, and back, and checks every byte.
fn transfer(site: &Site, plan: Plan<'_>) -> Transfer {
    let listener = plan.listener.unwrap_or_else(|| listen(site, plan.six));
    if let Some(ask) = &plan.ask {
        plan.endpoint.ask(listener.as_fd(), ask).unwrap();
        rustix::net::sockopt::set_tcp_congestion(&listener, plan.endpoint.name()).unwrap();
    }
    let to = listener.local_addr().unwrap();
    let (bytes, back, endpoint) = (plan.bytes, plan.back, plan.endpoint);
    // Before anybody waits in accept: who cannot connect fails, and nobody waits for ever.
    let mut socket = site
        .s
        .run(|| match &plan.ask {
            Some(ask) => site::connect_asking(to, endpoint, ask),
            None => TcpStream::connect(to).unwrap(),
        })
        .unwrap();
    thread::scope(|scope| {
        let accepting = scope.spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut writing = socket.try_clone().unwrap();
            let answer = thread::spawn(move || writing.write_all(&payload(back)).unwrap());
            let mut data = Vec::new();
            socket.read_to_end(&mut data).unwrap();
            answer.join().unwrap();
            assert!(
                data == payload(bytes),
                "{} of {bytes} bytes came, or not as they were",
                data.len()
            );
            endpoint.connection(socket.as_fd()).unwrap()
        });
        let mut reading = socket.try_clone().unwrap();
        let answered = thread::spawn(move || {
            let mut data = vec![0; back];
            reading.read_exact(&mut data).unwrap();
            data
        });
        socket.write_all(&payload(bytes)).unwrap();
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(answered.join().unwrap() == payload(back), "what came back is not what was sent");
        let receiver = accepting.join().unwrap();
        Transfer {
            sender: endpoint.connection(socket.as_fd()).unwrap(),
            receiver,
            congestion: congestion(&socket),
        }
    })
}

#[test]
fn unaware_programs_speak_xcp_over_both_internets() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::All);
    let router = site.router(20_000_000, Hook::Any);
    for six in [false, true] {
        let done = transfer(&site, Plan { six, back: MEGABYTE / 2, ..Plan::new(&endpoint) });
        let (sender, receiver) = (done.sender.unwrap(), done.receiver.unwrap());
        assert_eq!((sender.agreement, receiver.agreement), (Agreement::Agreed, Agreement::Agreed));
        assert!(sender.sending && sender.marked && sender.receiving, "{sender:?}");
        assert!(
            sender.returns > 0
                && sender.rtt_samples > 0
                && receiver.received as usize >= 2 * MEGABYTE / 1500,
            "{sender:?} {receiver:?}"
        );
        assert_eq!(done.congestion, endpoint.name());
    }
    let counts = router.status().unwrap().counts;
    assert!(counts.processed as usize >= 4 * MEGABYTE / 1500 && counts.lowered > 0, "{counts:?}");
    assert_eq!((counts.malformed, counts.fragments, counts.unreadable), (0, 0, 0), "{counts:?}");
    assert_eq!(endpoint.counts().unwrap().agreed, 4);
    site.assert_checksums();
}

#[test]
fn clsact_serves_where_there_is_no_tcx() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::All);
    let router = site.router(20_000_000, Hook::Clsact);
    let done = transfer(&site, Plan::new(&endpoint));
    assert!(done.sender.unwrap().marked && router.status().unwrap().counts.processed > 0);
    site.r.run(|| drop(router)).unwrap();
    assert!(!site.has_clsact(), "the hook that came with the router stayed");
}

#[test]
fn the_2005_format() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::Nobody);
    let router = site.router(20_000_000, Hook::Any);
    let ask = Ask { classic: true, ..Ask::default() };
    let done = transfer(&site, Plan { ask: Some(ask), back: MEGABYTE, ..Plan::new(&endpoint) });
    let sender = done.sender.unwrap();
    assert!(
        sender.classic && sender.marked && sender.returns > 0 && sender.receiving,
        "{sender:?}"
    );
    assert!(router.status().unwrap().counts.lowered > 0);
    site.assert_checksums();
}

#[test]
fn ids_tell_a_router_whom_it_limits() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::Nobody);
    let law = xcp_engine::RouterConfig::preset(xcp_engine::Preset::IxcpR, 20_000_000 / 8);
    let router = site.router_of(20_000_000, Hook::Any, law);
    let id = xcp_engine::bottleneck_id(1);
    let ask = Ask { ids: Some(0), ..Ask::default() };
    let plan = Plan { ask: Some(ask), bytes: 4 * MEGABYTE, back: MEGABYTE, ..Plan::new(&endpoint) };
    let over = AtomicBool::new(false);
    let (named, done) = thread::scope(|scope| {
        let named = scope.spawn(|| {
            let (mut named, mut shuffled) = (false, false);
            while !over.load(Ordering::Relaxed) {
                named |= connections(&site, &endpoint)
                    .iter()
                    .any(|c| c.connection.bottleneck_id == Some(id));
                shuffled |= router.status().unwrap().state.shuffled_bps > 0.0;
                thread::sleep(Duration::from_millis(10));
            }
            named && shuffled // what is shuffled there comes from packets that name the link
        });
        let done = transfer(&site, plan);
        over.store(true, Ordering::Relaxed);
        (named.join().unwrap(), done)
    });
    assert!(named, "{:?}", done.sender);
    // nobody lowers what goes back: there is no router
    let receiver = done.receiver.unwrap();
    assert_eq!((receiver.marked, receiver.bottleneck_id), (false, None));
    // who is not asked carries none
    let done = transfer(&site, Plan { ask: Some(Ask::default()), ..Plan::new(&endpoint) });
    assert_eq!(done.sender.unwrap().bottleneck_id, None);
    site.assert_checksums();
}

#[test]
fn the_robust_sender_goes_by_its_router_and_without_one_beside_others() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::Nobody);
    let ask = Ask { robust: true, ..Ask::default() };
    let plan = || Plan { ask: Some(ask), bytes: 4 * MEGABYTE, ..Plan::new(&endpoint) };
    // No router: after the first answers it is a CUBIC among others.
    let sender = transfer(&site, plan()).sender.unwrap();
    let robust = sender.robust.as_ref().unwrap();
    assert_eq!((sender.agreement, sender.marked), (Agreement::Agreed, false), "{sender:?}");
    assert!(robust.base_rtt_ns > 0 && robust.competes > 0, "{sender:?}");
    // Ids come with what the ends have agreed on, when the sender is there already.
    let law = xcp_engine::RouterConfig::preset(xcp_engine::Preset::Robust, 20_000_000 / 8);
    let router = site.router_of(20_000_000, Hook::Any, law);
    let ids = Ask { ids: Some(0), ..ask };
    let (id, over) = (xcp_engine::bottleneck_id(1), AtomicBool::new(false));
    let (listed, named, done) = thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let (mut listed, mut named) = (false, false);
            while !over.load(Ordering::Relaxed) {
                for Shown { connection: c, .. } in connections(&site, &endpoint) {
                    let robust = c.robust.as_ref().is_some_and(|robust| robust.base_rtt_ns > 0);
                    listed |= robust && c.cwnd_packets > 0.0;
                    named |= c.bottleneck_id == Some(id); // not at the end: there is little to send
                }
                thread::sleep(Duration::from_millis(10));
            }
            (listed, named)
        });
        let done = transfer(&site, Plan { ask: Some(ids), ..plan() });
        over.store(true, Ordering::Relaxed);
        let (listed, named) = watching.join().unwrap();
        (listed, named, done)
    });
    let sender = done.sender.unwrap();
    assert!(listed && named && sender.marked, "{listed} {named} {sender:?}");
    let counts = router.status().unwrap().counts;
    assert!(counts.processed as usize >= 4 * MEGABYTE / 1500 && counts.lowered > 0, "{counts:?}");
    // Who is not asked has the other sender.
    let done = transfer(&site, Plan { ask: Some(Ask::default()), ..Plan::new(&endpoint) });
    assert_eq!(done.sender.unwrap().robust, None);
    site.assert_checksums();
}

#[test]
fn listeners_that_were_there_before() {
    let Some(site) = Site::new() else { return };
    let listener = listen(&site, false);
    let endpoint = endpoint(&site, Give::All);
    site.d.run(|| endpoint.wake_listeners()).unwrap().unwrap();
    let done =
        transfer(&site, Plan { listener: Some(listener), back: MEGABYTE, ..Plan::new(&endpoint) });
    let (sender, receiver) = (done.sender.unwrap(), done.receiver.unwrap());
    assert_eq!((sender.agreement, receiver.agreement), (Agreement::Agreed, Agreement::Agreed));
    assert!(sender.sending && receiver.sending, "{sender:?} {receiver:?}");
}

#[test]
fn who_asks_for_nothing_gets_nothing() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::Nobody);
    let done = transfer(&site, Plan::new(&endpoint));
    assert_ne!(done.congestion, endpoint.name());
    assert_eq!(endpoint.counts().unwrap().agreed, 0);
}

#[test]
fn ports_and_prefixes_choose() {
    let Some(site) = Site::new() else { return };
    let elsewhere: (IpAddr, u8) = ("192.0.2.0".parse().unwrap(), 24);
    let listed = |ports: &[u16], prefixes: &[(IpAddr, u8)]| Give::Listed {
        ports: ports.to_vec(),
        prefixes: prefixes.to_vec(),
    };
    let port = 7_863;
    for (give, given) in [
        (listed(&[port], &[]), true),
        (listed(&[port + 1], &[elsewhere]), false),
        (listed(&[], &[(site.address(false), 32)]), true),
        (listed(&[], &[(site.address(false), 8)]), true),
    ] {
        let endpoint = endpoint(&site, give.clone());
        let listener =
            site.d.run(|| TcpListener::bind((site.address(false), port)).unwrap()).unwrap();
        let done = transfer(
            &site,
            Plan { listener: Some(listener), bytes: 10_000, ..Plan::new(&endpoint) },
        );
        assert_eq!(done.congestion == endpoint.name(), given, "{give:?}");
    }
}

#[test]
fn a_peer_that_does_not_speak_it() {
    let Some(site) = Site::new() else { return };
    // Opened before the endpoint is there, so that nobody answers for it.
    let listener = listen(&site, false);
    let endpoint = endpoint(&site, Give::All);
    let done = transfer(&site, Plan { listener: Some(listener), ..Plan::new(&endpoint) });
    assert_eq!(done.sender.unwrap().agreement, Agreement::FallenPeer);
    assert_eq!(done.congestion, "reno", "the fallback that was chosen");
    assert_eq!(endpoint.counts().unwrap().fallen_peer, 1);
}

/// Devices that drop what carries an option that they do not know: on the way there, back, or in
/// data only. Whatever they drop, both ends are soon an ordinary TCP.
#[test]
fn what_drops_the_option_is_got_around() {
    for (mischief, there, back) in [
        (Mischief::Refuse, true, false),
        (Mischief::Refuse, false, true),
        (Mischief::RefuseHeaders, true, true),
    ] {
        let Some(site) = Site::new() else { return };
        let endpoint = endpoint(&site, Give::All);
        let ways = [false, true].into_iter().filter(|way| if *way { back } else { there });
        let _boxes: Vec<_> = ways.map(|way| site.middlebox(way, mischief)).collect();
        let begin = Instant::now();
        let done =
            transfer(&site, Plan { bytes: MEGABYTE, back: MEGABYTE, ..Plan::new(&endpoint) });
        let sender = done.sender.unwrap().agreement;
        let wanted = if mischief == Mischief::Refuse {
            Agreement::FallenPeer
        } else {
            Agreement::FallenSilent
        };
        assert_eq!(sender, wanted, "{mischief:?}");
        assert_eq!(done.congestion, "reno", "{mischief:?}");
        let took = begin.elapsed();
        assert!(
            took < Duration::from_secs(20),
            "{mischief:?} there {there}, back {back}: {took:?}"
        );
    }
}

#[test]
fn a_fallback_that_the_kernel_does_not_have_is_refused() {
    let Some(_site) = Site::new() else { return };
    for fallback in ["nosuch", "xcp_refused"] {
        let config = EndpointConfig {
            name: "xcp_refused".into(),
            fallback: fallback.into(),
            ..EndpointConfig::default()
        };
        let Err(told) = Endpoint::load(&config) else { panic!("{fallback} is taken") };
        let told = told.to_string();
        assert!(told.contains(&format!("\"{fallback}\" cannot be the fallback")), "{told}");
    }
}

#[test]
fn chosen_too_late() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::Nobody);
    let listener = listen(&site, false);
    let mut socket =
        site.s.run(|| TcpStream::connect(listener.local_addr().unwrap()).unwrap()).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    rustix::net::sockopt::set_tcp_congestion(socket.as_fd(), endpoint.name()).unwrap();
    socket.write_all(&payload(100_000)).unwrap();
    let mut data = vec![0; 100_000];
    other.read_exact(&mut data).unwrap();
    assert!(data == payload(100_000));
    assert_eq!(congestion(&socket), "reno");
    assert_eq!(endpoint.counts().unwrap().fallen_late, 1);
}

/// The option stops coming in mid-connection: what an endpoint that is disabled, or a middlebox,
/// does.
#[test]
fn feedback_that_stops() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::All);
    let listener = listen(&site, false);
    let mut socket =
        site.s.run(|| TcpStream::connect(listener.local_addr().unwrap()).unwrap()).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    let reader = thread::spawn(move || {
        let mut data = vec![0; MEGABYTE];
        while other.read(&mut data).is_ok_and(|n| n > 0) {}
    });
    socket.write_all(&payload(MEGABYTE)).unwrap();
    assert_eq!(congestion(&socket), endpoint.name());
    let stripper = site.middlebox(true, Mischief::Strip);
    let until = Instant::now() + Duration::from_secs(20);
    while congestion(&socket) == endpoint.name() && Instant::now() < until {
        socket.write_all(&payload(MEGABYTE / 4)).unwrap();
    }
    assert_eq!(congestion(&socket), "reno");
    assert_eq!(endpoint.counts().unwrap().fallen_silent, 1);
    drop(stripper);
    drop(socket);
    reader.join().unwrap();
}

/// No router on the path: as an ordinary TCP, not as fast as it can.
#[test]
fn a_path_without_router_is_not_blasted() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::All);
    site.shape(50_000_000, Limit::Packets(20));
    let done = transfer(&site, Plan { bytes: 20 * MEGABYTE, ..Plan::new(&endpoint) });
    let sender = done.sender.unwrap();
    assert!(!sender.marked && sender.losses > 0, "{sender:?}");
    let sent = 20 * MEGABYTE / 1448;
    assert!(site.dropped() < sent / 10, "{} of {sent} packets were dropped", site.dropped());
    site.assert_checksums();
}

/// Losses all over the window, data both ways: what has three SACK blocks to tell makes room in
/// them for the option, and nobody falls silent. Which packets are lost is chance, and a machine
/// that stops for a while can make both ends wait for timeouts only: three runs have to fail.
/// Where no room is made, all do.
#[test]
fn sack_makes_room() {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let Some(site) = Site::new() else { return };
        let done = through_losses(&site);
        let ends = [done.sender.unwrap(), done.receiver.unwrap()];
        let trimmed: u64 = ends.iter().map(|end| end.trimmed).sum();
        if trimmed > 0 && ends.iter().all(|end| end.agreement == Agreement::Agreed) {
            return;
        }
        seen.push(ends);
    }
    panic!("three runs made no room, or fell silent: {seen:#?}");
}

/// Six megabytes each way, of which one packet in sixteen is lost.
fn through_losses(site: &Site) -> Transfer {
    let endpoint = endpoint(site, Give::All);
    // A queue of 24 ms is to stand: there is no other delay here, and windows have to be large
    // enough to have holes.
    let router = site.router_with(50_000_000, Hook::Any, 150_000);
    // Single segments are lost, not super-packets: many holes.
    site.cut_up_at_hosts();
    let losing = [site.middlebox(false, Mischief::Lose), site.middlebox(true, Mischief::Lose)];
    let plan = Plan { bytes: 6 * MEGABYTE, back: 6 * MEGABYTE, ..Plan::new(&endpoint) };
    let done = transfer(site, plan);
    assert_eq!(router.status().unwrap().counts.malformed, 0);
    drop(losing);
    site.assert_checksums();
    done
}

/// The same on a kernel that does not take the programs that make the room: no option finds any
/// while there is news of three holes. With one packet in sixteen lost both ways that can be
/// always, and then senders fall back; whatever they do, all data come.
#[test]
fn a_kernel_that_refuses_room_beside_sack() {
    let Some(site) = Site::new() else { return };
    let endpoint = site::endpoint_without_room(&site);
    assert_eq!((endpoint.no_room(), endpoint.rooms()), (Some(NoRoom::Refused), 0));
    let router = site.router_with(50_000_000, Hook::Any, 150_000);
    site.cut_up_at_hosts();
    let losing = [site.middlebox(false, Mischief::Lose), site.middlebox(true, Mischief::Lose)];
    let done =
        transfer(&site, Plan { bytes: 6 * MEGABYTE, back: 6 * MEGABYTE, ..Plan::new(&endpoint) });
    let (sender, receiver) = (done.sender.unwrap(), done.receiver.unwrap());
    for one in [sender.agreement, receiver.agreement] {
        assert!(matches!(one, Agreement::Agreed | Agreement::FallenSilent), "{one:?}");
    }
    assert_eq!((sender.trimmed, receiver.trimmed), (0, 0));
    if sender.agreement == Agreement::Agreed {
        assert!(sender.marked && sender.returns > 0, "{sender:?}");
    } // else it may have fallen silent before anything was returned
    assert!(router.status().unwrap().counts.processed > 0);
    drop(losing);
    site.assert_checksums();
}

/// A kernel that refuses to iterate over the storage of sockets shows what is in the caller's
/// namespace, with all that belongs to it.
#[test]
fn a_kernel_that_lists_the_connections_of_one_namespace() {
    let Some(site) = Site::new() else { return };
    let endpoint = site::endpoint_that_sees_here(&site);
    assert!(!endpoint.sees_everywhere());
    assert_eq!((endpoint.no_room(), endpoint.rooms()), (None, 2), "nothing else is missing");
    let _router = site.router_of(
        20_000_000,
        Hook::Any,
        xcp_engine::RouterConfig::preset(xcp_engine::Preset::Robust, 20_000_000 / 8),
    );
    let seen = |host: &Namespace| host.run(|| endpoint.connections()).unwrap().unwrap();
    let over = AtomicBool::new(false);
    let (sending, receiving, elsewhere) = thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let (mut sending, mut receiving, mut elsewhere) = (false, false, 0);
            while !over.load(Ordering::Relaxed) {
                let [at_s, at_d] = [&site.s, &site.d].map(seen);
                assert!(at_s.iter().all(|c| u64::from(c.namespace) == site.s.inode()));
                sending |= at_s.iter().any(|c| {
                    let robust = c.connection.robust.as_ref();
                    c.connection.sending && robust.is_some_and(|robust| robust.base_rtt_ns > 0)
                });
                receiving |= at_d.iter().any(|c| c.connection.receiving);
                elsewhere += seen(&site.r).len();
                thread::sleep(Duration::from_millis(10));
            }
            (sending, receiving, elsewhere)
        });
        let ask = Ask { robust: true, ..Ask::default() };
        transfer(&site, Plan { ask: Some(ask), bytes: 4 * MEGABYTE, ..Plan::new(&endpoint) });
        over.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    });
    assert!(sending && receiving, "{sending} {receiving}");
    assert_eq!(elsewhere, 0);
}

/// A program of somebody else's decides on every packet. The router comes first where it can, and
/// says so where it cannot.
#[test]
fn a_neighbour_that_keeps_packets_to_itself() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::All);
    let neighbour = site.middlebox(false, Mischief::Pass);
    let router = site.router(20_000_000, Hook::Any);
    if router.hook() != "tcx" {
        return xcp_skip::skipped!("kernel", "a neighbour on TCX: this kernel has none");
    }
    let done = transfer(&site, Plan::new(&endpoint));
    assert!(done.sender.unwrap().marked && router.status().unwrap().counts.processed > 0);
    assert_eq!(site.behind(&router), [""; 0]);
    drop(neighbour);
    let first = site.first_middlebox(Mischief::Pass);
    assert_eq!(site.behind(&router), ["xcp_pass"]);
    let before = router.status().unwrap().counts.processed;
    transfer(&site, Plan { bytes: 10_000, ..Plan::new(&endpoint) });
    assert_eq!(
        router.status().unwrap().counts.processed,
        before,
        "it was told what it does not see, and sees it"
    );
    drop(router);
    let clsact = site.router(20_000_000, Hook::Clsact);
    assert_eq!(site.behind(&clsact), ["xcp_pass"], "all of TCX is before clsact");
    drop(first);
}

/// On one host, whichever came first: the option is written before the router reads it.
#[test]
fn room_is_made_before_the_router_of_the_same_host() {
    let Some(site) = Site::new() else { return };
    let mut endpoint = endpoint(&site, Give::Nobody);
    let at_router = |endpoint: &mut Endpoint| {
        site.r.run(|| endpoint.make_room(site.out(), true)).unwrap().unwrap()
    };
    let order = || site.r.run(|| xcp_linux::rehearsal::order(site.out())).unwrap();
    let expected = ["xcp_room_ethern", "xcp_router"];
    let _last = site.middlebox(false, Mischief::Pass);
    at_router(&mut endpoint);
    let router = site.router(20_000_000, Hook::Any);
    if router.hook() != "tcx" {
        return xcp_skip::skipped!("kernel", "the order on TCX: this kernel has none");
    }
    assert_eq!(order()[..2], expected);
    drop((endpoint, router));
    let router = site.router(20_000_000, Hook::Any);
    let mut endpoint = site::endpoint(&site, Give::Nobody);
    at_router(&mut endpoint);
    assert_eq!(order()[..2], expected);
    assert_eq!(site.behind(&router), [""; 0], "what is xcpnet's own is nothing to be told");
}

/// The router leaves in mid-connection, its link and queue stay: the sender goes on as an ordinary
/// TCP, and is XCP's again when a router is back.
#[test]
fn a_router_that_leaves() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::All);
    let router = site.router(20_000_000, Hook::Any);
    let listener = listen(&site, false);
    let mut socket =
        site.s.run(|| TcpStream::connect(listener.local_addr().unwrap()).unwrap()).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    let reader = thread::spawn(move || {
        let mut data = vec![0; MEGABYTE];
        while other.read(&mut data).is_ok_and(|n| n > 0) {}
    });
    let send = |socket: &mut TcpStream, megabytes: usize| {
        let mut most = 0.0f64;
        for _ in 0..16 * megabytes {
            socket.write_all(&payload(MEGABYTE / 16)).unwrap();
            most = most.max(endpoint.connection(socket.as_fd()).unwrap().unwrap().cwnd_packets);
        }
        (most, endpoint.connection(socket.as_fd()).unwrap().unwrap())
    };
    let (_, governed) = send(&mut socket, 4);
    assert!(governed.marked && site.dropped() == 0, "{governed:?}");
    site.r.run(|| drop(router)).unwrap();
    let (most, alone) = send(&mut socket, 8);
    assert!(!alone.marked && alone.sending, "{alone:?}");
    // the queue of 400 packets, and what else is on the way
    assert!(most < 600.0, "a window of {most:.0} packets");
    let sent = 12 * MEGABYTE / 1448;
    assert!(site.dropped() < sent / 20, "{} of {sent} packets were dropped", site.dropped());
    let _router = site.router(20_000_000, Hook::Any);
    // Megabytes that were written before it came back may still wait in the socket's buffer.
    let again = (0..16).map(|_| send(&mut socket, 1).1).find(|now| now.marked);
    let again = again.expect("the router that is back is heard");
    assert_eq!(again.agreement, Agreement::Agreed, "{again:?}");
    drop(socket);
    reader.join().unwrap();
}

#[test]
fn names_are_checked_and_taken_once() {
    let Some(site) = Site::new() else { return };
    let first = endpoint(&site, Give::Nobody);
    let again = EndpointConfig {
        name: first.name().into(),
        fallback: "reno".into(),
        ..EndpointConfig::default()
    };
    let error = Endpoint::load(&again).unwrap_err().to_string();
    assert!(error.contains(first.name()) && error.contains("endpoint disable"), "{error}");
    let long =
        EndpointConfig { name: "a-name-that-is-too-long".into(), ..EndpointConfig::default() };
    assert!(Endpoint::load(&long).unwrap_err().to_string().contains("1 to 15"));
}
