//! [`Relay`]: one address for two servers, as a Service is.

use std::{
    io,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

/// A TCP relay on a free port of the loopback interface. The servers behind it take turns, a connection each. One that refuses connections
/// is passed over until it accepts them again.
///
/// The relay ends with this value, and every connection through it too.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    open: Arc<Open>,
    accepting: Option<JoinHandle<()>>,
}

/// The two sides of a connection.
type Sides = [TcpStream; 2];

/// The connections that are open, and perhaps some that are not any more; none once the relay has ended.
#[derive(Debug)]
struct Open(Mutex<Option<Vec<Weak<Sides>>>>);

impl Relay {
    /// Starts a relay to these servers. They need not accept connections yet.
    ///
    /// # Errors
    /// When there is no server, or no free port.
    pub fn start(servers: &[SocketAddr]) -> Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), servers)
    }

    /// The same, at an address of the caller's choice.
    pub(crate) fn start_at(address: SocketAddr, servers: &[SocketAddr]) -> Result<Self> {
        ensure!(!servers.is_empty(), "a relay needs a server");
        let listener = TcpListener::bind(address).with_context(|| format!("a relay at {address}"))?;
        let address = listener.local_addr()?;
        let open = Arc::new(Open(Mutex::new(Some(Vec::new()))));
        let accepting = thread::spawn({
            let (open, servers) = (Arc::clone(&open), servers.to_vec());
            move || accept(&listener, servers, &open)
        });
        Ok(Self { address, open, accepting: Some(accepting) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let open = self.open.lock().take();
        let open = open.iter().flatten().filter_map(Weak::upgrade);
        open.for_each(|sides| sides.iter().for_each(close));
        // Wakes the thread that accepts, so that it sees the end. If the address is gone, nobody can, and the thread stays.
        let is_awake = TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_ok();
        if let Some(accepting) = self.accepting.take().filter(|_| is_awake) {
            // It does not panic; a relay that ends has nobody to tell.
            let _ = accepting.join();
        }
    }
}

impl Open {
    fn lock(&self) -> MutexGuard<'_, Option<Vec<Weak<Sides>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &TcpListener, mut servers: Vec<SocketAddr>, open: &Arc<Open>) {
    for client in listener.incoming() {
        if open.lock().is_none() {
            return;
        }
        let Ok(client) = client else { continue };
        servers.rotate_left(1);
        let (servers, open) = (servers.clone(), Arc::clone(open));
        // It ends with its connection, which ends with the relay.
        thread::spawn(move || carry(client, &servers, &open));
    }
}

/// Carries one connection to its end: to the server whose turn it is, or else to the next that accepts it. A client for whom there is no
/// server is hung up on.
fn carry(client: TcpStream, servers: &[SocketAddr], open: &Open) {
    let Some(server) = servers.iter().find_map(|server| TcpStream::connect(server).ok()) else { return };
    let sides = Arc::new([client, server]);
    match &mut *open.lock() {
        None => return,
        Some(open) => {
            open.retain(|sides| sides.strong_count() > 0);
            open.push(Arc::downgrade(&sides));
        }
    }
    let [client, server] = &*sides;
    thread::scope(|scope| {
        scope.spawn(|| pass_on(client, server));
        pass_on(server, client);
    });
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
