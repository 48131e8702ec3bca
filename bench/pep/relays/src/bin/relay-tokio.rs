//! The relay with tokio on one thread: `copy_bidirectional`, or splice(2) when tokio says that a
//! socket is ready, through pipes that are lent while bytes wait.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::pin::pin;
use std::task::Poll;

use relays::{AT_ONCE, How, REACHED, arguments, target};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest, copy_bidirectional_with_sizes};
use tokio::net::{TcpListener, TcpStream};

fn main() -> io::Result<()> {
    let (address, how) = arguments();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async move {
        let listener = TcpListener::bind(address).await?;
        println!("ready");
        loop {
            let (client, _) = listener.accept().await?;
            tokio::task::spawn_local(async move {
                // What breaks a connection breaks it for both.
                let _ = relay(client, how).await;
            });
        }
    })
}

async fn relay(mut client: TcpStream, how: How) -> io::Result<()> {
    let mut request = Vec::with_capacity(512);
    let address = loop {
        if client.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
        if let Some(address) = target(&request) {
            break address;
        }
    };
    drop(request);
    let mut server = TcpStream::connect(address).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    client.write_all(REACHED).await?;
    match how {
        How::Copy => copy_bidirectional_with_sizes(&mut client, &mut server, AT_ONCE, AT_ONCE)
            .await
            .map(|_| ()),
        How::Splice => {
            let there = way(&client, &server);
            let back = way(&server, &client);
            both(there, back).await
        }
    }
}

/// Both to their end, or until one fails.
async fn both(
    one: impl Future<Output = io::Result<()>>,
    other: impl Future<Output = io::Result<()>>,
) -> io::Result<()> {
    let (mut one, mut other, mut done) = (pin!(one), pin!(other), [false; 2]);
    poll_fn(|context| {
        if !done[0]
            && let Poll::Ready(result) = one.as_mut().poll(context)
        {
            result?;
            done[0] = true;
        }
        if !done[1]
            && let Poll::Ready(result) = other.as_mut().poll(context)
        {
            result?;
            done[1] = true;
        }
        if done == [true; 2] { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

thread_local! {
    static PIPES: RefCell<Vec<[OwnedFd; 2]>> = const { RefCell::new(Vec::new()) };
}

fn pipe() -> io::Result<[OwnedFd; 2]> {
    if let Some(pipe) = PIPES.with_borrow_mut(Vec::pop) {
        return Ok(pipe);
    }
    let mut fds = [0; 2];
    // SAFETY: the call writes two descriptors, which are nobody else's.
    unsafe {
        if libc::pipe2(fds.as_mut_ptr(), libc::O_NONBLOCK | libc::O_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error());
        }
        libc::fcntl(fds[1], libc::F_SETPIPE_SZ, 4 * AT_ONCE);
        Ok(fds.map(|fd| OwnedFd::from_raw_fd(fd)))
    }
}

fn splice(from: i32, to: i32, length: usize) -> io::Result<usize> {
    // SAFETY: no pointers but null ones.
    let moved = unsafe {
        libc::splice(
            from,
            std::ptr::null_mut(),
            to,
            std::ptr::null_mut(),
            length,
            libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK,
        )
    };
    if moved < 0 { Err(io::Error::last_os_error()) } else { Ok(moved as usize) }
}

async fn way(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
    loop {
        from.readable().await?;
        let pipe = pipe()?;
        let mut held = match from.try_io(Interest::READABLE, || {
            splice(from.as_raw_fd(), pipe[1].as_raw_fd(), 4 * AT_ONCE)
        }) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
            Ok(0) => {
                // SAFETY: no pointers.
                unsafe { libc::shutdown(to.as_raw_fd(), libc::SHUT_WR) };
                PIPES.with_borrow_mut(|pipes| pipes.push(pipe));
                return Ok(());
            }
            moved => moved?,
        };
        while held > 0 {
            held -= to
                .async_io(Interest::WRITABLE, || splice(pipe[0].as_raw_fd(), to.as_raw_fd(), held))
                .await?;
        }
        PIPES.with_borrow_mut(|pipes| pipes.push(pipe));
    }
}
