//! Connections whose bytes are known: a stream of pseudo-random bytes that both ends can make.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use xcp_linux::namespace::Namespace;

/// splitmix64.
pub fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The bytes of a stream from a place on.
pub fn fill(seed: u64, from: u64, buffer: &mut [u8]) {
    for (at, byte) in buffer.iter_mut().enumerate() {
        let place = from + at as u64;
        *byte = mix(seed ^ (place >> 3)).to_le_bytes()[(place & 7) as usize];
    }
}

/// Sends so many bytes of a stream.
pub fn send(to: &mut impl Write, seed: u64, length: u64) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    let mut sent = 0;
    while sent < length {
        let part = (length - sent).min(buffer.len() as u64) as usize;
        fill(seed, sent, &mut buffer[..part]);
        to.write_all(&buffer[..part])?;
        sent += part as u64;
    }
    Ok(())
}

/// Reads until the end or an error; every byte must be the stream's. Returns how many there were,
/// and the error.
pub fn receive(from: &mut impl Read, seed: u64) -> (u64, Option<io::Error>) {
    let (mut buffer, mut expected) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    let mut read = 0;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return (read, None),
            Ok(length) => {
                fill(seed, read, &mut expected[..length]);
                assert!(
                    buffer[..length] == expected[..length],
                    "stream {seed}: something else than was sent, in {length} bytes from {read} on"
                );
                read += length as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return (read, Some(e)),
        }
    }
}

/// A listener in a namespace.
pub fn listen(namespace: &Namespace, address: &str, port: u16) -> TcpListener {
    let address = SocketAddr::new(address.parse().unwrap(), port);
    namespace.run(|| TcpListener::bind(address)).unwrap().unwrap()
}

/// A connection from a namespace, which gives up after a while rather than never.
pub fn connect(namespace: &Namespace, address: &str, port: u16) -> io::Result<TcpStream> {
    let address = SocketAddr::new(address.parse().unwrap(), port);
    let stream =
        namespace.run(|| TcpStream::connect_timeout(&address, Duration::from_secs(20)))??;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.set_write_timeout(Some(Duration::from_secs(60)))?;
    Ok(stream)
}

/// What a client asks of [`serve`]: the first 24 bytes it sends.
#[derive(Clone, Copy)]
pub struct Wish {
    pub seed: u64,
    /// Bytes that the server sends.
    pub down: u64,
    /// Reset the connection after so many of them; more than `down`: never.
    pub reset_at: u64,
}

impl Wish {
    pub fn bytes(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip([self.seed, self.down, self.reset_at]) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut bytes = [0; 24];
        from.read_exact(&mut bytes)?;
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        Ok(Self { seed: word(0), down: word(8), reset_at: word(16) })
    }
}

/// Serves so many connections, each on a thread: reads a wish, then sends what is wished while it
/// reads the client's stream (whose seed is the wish's, plus one) to its end. Returns what it read
/// of each, and whether that ended well.
pub fn serve(listener: TcpListener, connections: usize) -> JoinHandle<Vec<(u64, u64, bool)>> {
    std::thread::spawn(move || {
        let each: Vec<_> = (0..connections)
            .map(|_| {
                let (stream, _) = listener.accept().unwrap();
                std::thread::spawn(move || attend(stream))
            })
            .collect();
        each.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The server's part of one connection.
pub fn attend(mut stream: TcpStream) -> (u64, u64, bool) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let Ok(wish) = Wish::read(&mut stream) else { return (0, 0, false) };
    let mut out = stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let sent = send(&mut out, wish.seed, wish.down.min(wish.reset_at));
        if wish.reset_at < wish.down {
            rustix_linger(&out);
            return true;
        }
        let _ = out.shutdown(std::net::Shutdown::Write);
        sent.is_err()
    });
    let (read, error) = receive(&mut stream, wish.seed + 1);
    let reset = sender.join().unwrap();
    (wish.seed, read, error.is_none() && !reset)
}

/// Reads whatever comes until it ends, and counts it.
pub fn read_all(stream: &TcpStream) -> (Arc<AtomicU64>, JoinHandle<()>) {
    let (count, mut stream) = (Arc::new(AtomicU64::new(0)), stream.try_clone().unwrap());
    let reader = std::thread::spawn({
        let count = count.clone();
        move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
                count.fetch_add(bytes as u64, Ordering::Relaxed);
            }
        }
    });
    (count, reader)
}

/// Closing it resets it, and it is closed for both directions at once.
pub fn rustix_linger(stream: &TcpStream) {
    use std::os::fd::AsRawFd as _;
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: an open socket and a structure that outlives the call.
    unsafe {
        let length = size_of::<libc::linger>() as libc::socklen_t;
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            length,
        );
    }
    // Wakes the thread that reads; the last descriptor's close then resets.
    let _ = stream.shutdown(std::net::Shutdown::Read);
}
