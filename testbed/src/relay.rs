//! [`Relay`]: one address for two servers, as a Service is.

use std::{
    collections::BTreeMap,
    io,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use anyhow::{Context as _, Result, ensure};

/// A TCP relay on a free port of the loopback interface. The servers behind it take turns, a connection each. One that refuses connections
/// is passed over until it accepts them again.
///
/// The relay ends with this value, and every connection through it too.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    servers: Vec<SocketAddr>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    has_ended: bool,
    /// The number of connections so far.
    accepted: usize,
    /// The two sides of each connection that is open, by its number.
    open: BTreeMap<usize, [TcpStream; 2]>,
}

impl Relay {
    /// Starts a relay to these servers. They need not accept connections yet.
    ///
    /// # Errors
    /// When there is no server, or no free port.
    pub fn start(servers: &[SocketAddr]) -> Result<Self> {
        ensure!(!servers.is_empty(), "a relay needs a server");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("a port for the relay")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { servers: servers.to_vec(), state: Mutex::default() });
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.accept(&listener)
        });
        Ok(Self { address, shared, accepting: Some(accepting) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.has_ended = true;
            state.open.values().flatten().for_each(close);
        }
        // Wakes the thread that accepts, so that it sees the end.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            // It does not panic; a relay that ends has nobody to tell.
            let _ = accepting.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.state().has_ended {
                return;
            }
            let Ok(client) = client else { continue };
            let shared = Arc::clone(self);
            // It ends with its connection, which ends with the relay.
            thread::spawn(move || shared.follow(client));
        }
    }

    /// Carries one connection to its end. A client for whom there is no server is hung up on.
    fn follow(&self, client: TcpStream) {
        let number = {
            let mut state = self.state();
            state.accepted += 1;
            state.accepted
        };
        let Some(server) = self.connect(number) else { return };
        let Ok(sides) = client.try_clone().and_then(|client| Ok([client, server.try_clone()?])) else {
            return;
        };
        {
            let mut state = self.state();
            if state.has_ended {
                return;
            }
            state.open.insert(number, sides);
        }
        thread::scope(|scope| {
            scope.spawn(|| pass_on(&client, &server));
            pass_on(&server, &client);
        });
        self.state().open.remove(&number);
    }

    /// A connection to the server whose turn it is, or else to the next that accepts one.
    fn connect(&self, number: usize) -> Option<TcpStream> {
        let turn = number % self.servers.len();
        let (before, from) = self.servers.split_at(turn);
        from.iter().chain(before).find_map(|server| TcpStream::connect(server).ok())
    }
}

/// Passes on what one side sends, until it ends or either breaks.
fn pass_on(mut from: &TcpStream, mut to: &TcpStream) {
    // What is sent is small and awaited. It would be late otherwise, not lost.
    let _ = to.set_nodelay(true);
    match io::copy(&mut from, &mut to) {
        // The other direction may go on. The stream may be closed already.
        Ok(_) => drop(to.shutdown(Shutdown::Write)),
        Err(_) => [from, to].into_iter().for_each(close),
    }
}

/// Ends both directions, if they have not ended already.
fn close(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}
