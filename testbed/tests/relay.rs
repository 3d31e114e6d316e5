//! What a relay does for its clients, and what of it stays.
//!
//! A program of its own, which starts no process: a process that another test starts has for a moment every socket that is open here, and
//! then a port on which nobody listens any more would still be listened on.

#![allow(clippy::unwrap_used, reason = "what helps a test may fail it")]

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use pintle_testbed::Relay;

/// Listens on an address of loopback that nobody else uses: neither another test, nor a relay, nor whoever asks for any free port of
/// 127.0.0.1. So the port stays free when the listener is gone.
fn listen() -> TcpListener {
    static NEXT: AtomicU8 = AtomicU8::new(2);
    TcpListener::bind((Ipv4Addr::new(127, 0, 0, NEXT.fetch_add(1, Ordering::Relaxed)), 0)).unwrap()
}

/// A server that says its name, and then whatever it is told. It ends with the test process.
fn server(name: &'static str) -> SocketAddr {
    let listener = listen();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                stream.write_all(name.as_bytes()).unwrap();
                let mut told = stream.try_clone().unwrap();
                let _ = io::copy(&mut told, &mut stream);
            });
        }
    });
    address
}

/// An address at which nobody listens.
fn nobody() -> SocketAddr {
    listen().local_addr().unwrap()
}

/// A connection through the relay, and the first letter that comes.
fn ask(relay: &Relay) -> (TcpStream, char) {
    let mut stream = TcpStream::connect(relay.address()).unwrap();
    let mut letter = [0];
    stream.read_exact(&mut letter).unwrap();
    (stream, char::from(letter[0]))
}

#[test]
fn the_servers_take_turns_and_what_is_said_arrives_in_both_directions() {
    let relay = Relay::start(&[server("a"), server("b")]).unwrap();
    let mut named: Vec<char> = (0..4).map(|_| ask(&relay).1).collect();
    named.sort_unstable();
    assert_eq!(named, ['a', 'a', 'b', 'b']);

    let (mut stream, _) = ask(&relay);
    stream.write_all(b"hello").unwrap();
    // Only this direction ends; the answer still comes.
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "hello");
}

#[test]
fn a_server_that_is_gone_is_passed_over_and_comes_back() {
    let gone = nobody();
    let relay = Relay::start(&[server("a"), gone]).unwrap();
    assert!((0..4).all(|_| ask(&relay).1 == 'a'));

    let back = TcpListener::bind(gone).unwrap();
    let accepted = thread::spawn(move || back.accept().unwrap());
    let _both = [TcpStream::connect(relay.address()).unwrap(), TcpStream::connect(relay.address()).unwrap()];
    accepted.join().unwrap();
}

#[test]
fn a_client_is_hung_up_on_where_no_server_is_left() {
    let relay = Relay::start(&[nobody(), nobody()]).unwrap();
    let mut stream = TcpStream::connect(relay.address()).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
}

#[test]
fn the_end_of_a_server_is_the_end_of_its_connections() {
    let listener = listen();
    let relay = Relay::start(&[listener.local_addr().unwrap()]).unwrap();
    let mut stream = TcpStream::connect(relay.address()).unwrap();
    drop(listener.accept().unwrap());
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
}

#[test]
fn a_relay_takes_its_connections_and_its_port_with_it() {
    let relay = Relay::start(&[server("a")]).unwrap();
    let address = relay.address();
    let (mut stream, _) = ask(&relay);
    drop(relay);
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    TcpStream::connect(address).unwrap_err();
}

#[test]
fn a_relay_to_nowhere_is_refused() {
    Relay::start(&[]).unwrap_err();
}
