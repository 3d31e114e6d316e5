//! The program of the image `registry.test/hello:1`, which is a file without libraries. `/hello` waits: so a Pod holds its namespaces.
//! `/hello serve` says hello over HTTP, on port 8080, and prints what it was asked.

use std::{
    env,
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
};

fn main() -> std::io::Result<()> {
    if env::args().len() == 1 {
        loop {
            thread::park();
        }
    }
    let listener = TcpListener::bind("0.0.0.0:8080")?;
    println!("listening");
    for mut client in listener.incoming().flatten() {
        let mut asked = [0; 4096];
        // A client that goes away is its own loss.
        let read = client.read(&mut asked).unwrap_or(0);
        let asked = String::from_utf8_lossy(&asked[..read]);
        println!("{}", asked.lines().next().unwrap_or("nothing"));
        drop(client.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nhello\n"));
    }
    Ok(())
}
