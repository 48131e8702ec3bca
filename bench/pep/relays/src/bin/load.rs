//! What the relays carry: a server, and clients that ask for it by HTTP CONNECT. As little work as
//! possible at both ends (sendfile, and a receiver that throws away in the kernel), so that the
//! relay is what is measured.
//!
//!     load serve PORT
//!     load pull RELAY SERVER CONNECTIONS SECONDS  -> bytes received, bits per second
//!     load rate RELAY SERVER AT_ONCE SECONDS  -> connections per second: 1 byte there, 1000 back
//!     load idle RELAY SERVER CONNECTIONS      -> "open"; they stay until stdin ends

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use relays::REACHED;

const FILE: usize = 1 << 20;
const ANSWER: usize = 1000;

fn serve(port: u16) -> io::Result<()> {
    // SAFETY: a name that ends with zero; the descriptor stays open for good.
    let file = unsafe { libc::memfd_create(c"load".as_ptr(), 0) };
    // SAFETY: no pointers.
    unsafe { libc::ftruncate(file, FILE as i64) };
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    // SAFETY: an open socket; listening anew makes the queue longer than the library does.
    unsafe { libc::listen(listener.as_raw_fd(), 4096) };
    println!("ready");
    for stream in listener.incoming() {
        let mut stream = stream?;
        std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            let mut wish = [0];
            let _ = stream.read_exact(&mut wish);
            match wish[0] {
                b'd' => loop {
                    let mut at = 0;
                    // SAFETY: open descriptors; the offset is written during the call only.
                    while unsafe {
                        libc::sendfile(stream.as_raw_fd(), file, &raw mut at, FILE - at as usize)
                    } > 0
                        && at < FILE as i64
                    {}
                    if at < FILE as i64 {
                        return;
                    }
                },
                b'r' => drop(stream.write_all(&[b'x'; ANSWER])),
                b'i' => {
                    let _ = stream.write_all(b"i");
                    // Until the other side ends.
                    let _ = stream.read(&mut [0]);
                }
                _ => {}
            }
        })?;
    }
    Ok(())
}

/// A connection through the relay that has said what it wants.
fn ask(relay: &str, server: &str, wish: u8) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(relay)?;
    stream.set_nodelay(true)?;
    stream.write_all(format!("CONNECT {server} HTTP/1.1\r\n\r\n").as_bytes())?;
    let mut answer = vec![0; REACHED.len()];
    stream.read_exact(&mut answer)?;
    assert_eq!(answer, REACHED, "{}", String::from_utf8_lossy(&answer));
    stream.write_all(&[wish])?;
    Ok(stream)
}

/// Reads and throws away (tcp(7), MSG_TRUNC).
fn discard(stream: &TcpStream) -> usize {
    // SAFETY: with MSG_TRUNC nothing is written through the pointer.
    let got =
        unsafe { libc::recv(stream.as_raw_fd(), std::ptr::null_mut(), 4 << 20, libc::MSG_TRUNC) };
    usize::try_from(got).unwrap_or(0)
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().expect("a number");
    let (bytes, over) = (AtomicU64::new(0), AtomicBool::new(false));
    match words[..] {
        ["serve", port] => serve(port.parse().expect("a port"))?,
        ["pull", relay, server, count, seconds] => {
            let streams: Vec<TcpStream> =
                (0..number(count)).map(|_| ask(relay, server, b'd')).collect::<io::Result<_>>()?;
            let begin = Instant::now();
            std::thread::scope(|scope| {
                for stream in &streams {
                    scope.spawn(|| {
                        while !over.load(Ordering::Relaxed) {
                            bytes.fetch_add(discard(stream) as u64, Ordering::Relaxed);
                        }
                    });
                }
                std::thread::sleep(Duration::from_secs(number(seconds)));
                over.store(true, Ordering::Relaxed);
            });
            let bytes = bytes.into_inner();
            println!("{bytes} {}", bytes as f64 * 8.0 / begin.elapsed().as_secs_f64());
        }
        ["rate", relay, server, at_once, seconds] => {
            let begin = Instant::now();
            let end = begin + Duration::from_secs(number(seconds));
            std::thread::scope(|scope| {
                for _ in 0..number(at_once) {
                    scope.spawn(|| {
                        while Instant::now() < end {
                            let mut stream = ask(relay, server, b'r').expect("a connection");
                            let mut answer = Vec::with_capacity(ANSWER);
                            stream.read_to_end(&mut answer).expect("an answer");
                            assert_eq!(answer.len(), ANSWER);
                            bytes.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            });
            println!("{}", bytes.into_inner() as f64 / begin.elapsed().as_secs_f64());
        }
        ["idle", relay, server, count] => {
            let mut streams = Vec::new();
            for _ in 0..number(count) {
                let mut stream = ask(relay, server, b'i')?;
                stream.read_exact(&mut [0])?;
                streams.push(stream);
            }
            println!("open");
            let _ = io::stdin().read(&mut [0]);
        }
        _ => panic!("load serve|pull|rate|idle ..."),
    }
    Ok(())
}
