//! The relay with io_uring (monoio) on one thread: reads into a buffer and writes out of it, or
//! splices through a pipe for each direction.
//!
//! The kernel never splices on the ring's own thread: it gives every splice to a worker thread of
//! the process.

use std::io;

use monoio::buf::IoBufMut as _;
use monoio::io::splice::{SpliceDestination as _, SpliceSource as _};
use monoio::io::{AsyncReadRent, AsyncWriteRent, AsyncWriteRentExt as _, Splitable as _};
use monoio::net::unix::new_pipe;
use monoio::net::{TcpListener, TcpStream};
use relays::{AT_ONCE, How, REACHED, arguments, target};

#[monoio::main(driver = "io_uring", entries = 8192)]
async fn main() {
    let (address, how) = arguments();
    let listener = TcpListener::bind(address).expect("listen");
    println!("ready");
    loop {
        let (client, _) = listener.accept().await.expect("accept");
        monoio::spawn(async move {
            // What breaks a connection breaks it for both.
            let _ = relay(client, how).await;
        });
    }
}

async fn relay(mut client: TcpStream, how: How) -> io::Result<()> {
    let mut request = Vec::new();
    let address = loop {
        let (read, buffer) = client.read(Vec::with_capacity(512)).await;
        if read? == 0 {
            return Ok(());
        }
        request.extend(buffer);
        if let Some(address) = target(&request) {
            break address;
        }
    };
    drop(request);
    let server = TcpStream::connect_addr(address).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    client.write_all(REACHED).await.0?;
    let (mut client_in, mut client_out) = client.into_split();
    let (mut server_in, mut server_out) = server.into_split();
    match how {
        How::Copy => {
            let (there, back) = monoio::join!(
                copy(&mut client_in, &mut server_out),
                copy(&mut server_in, &mut client_out)
            );
            there.and(back)
        }
        How::Splice => {
            macro_rules! way {
                ($from:expr, $to:expr) => {
                    async {
                        let (mut reader, mut writer) = new_pipe()?;
                        loop {
                            let mut held =
                                $from.splice_to_pipe(&mut writer, AT_ONCE as u32).await?;
                            if held == 0 {
                                return $to.shutdown().await;
                            }
                            while held > 0 {
                                held -= $to.splice_from_pipe(&mut reader, held).await?;
                            }
                        }
                    }
                };
            }
            let (there, back): (io::Result<()>, io::Result<()>) =
                monoio::join!(way!(client_in, server_out), way!(server_in, client_out));
            there.and(back)
        }
    }
}

async fn copy(from: &mut impl AsyncReadRent, to: &mut impl AsyncWriteRent) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(AT_ONCE);
    loop {
        let (read, full) = from.read(buffer).await;
        if read? == 0 {
            return to.shutdown().await;
        }
        let (written, mut empty) = to.write_all(full).await;
        written?;
        // SAFETY: nothing is initialised in a length of nothing.
        unsafe { empty.set_init(0) };
        empty.clear();
        buffer = empty;
    }
}
