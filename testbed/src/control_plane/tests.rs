//! Tests that need no running control plane.

use std::net::TcpListener;
use std::thread;

use super::*;

#[test]
fn a_port_that_somebody_else_took_is_told_from_other_failures() {
    let binaries = Binaries::locate_or_build(&mut |line| eprintln!("{line}")).unwrap();
    let options = Options { nodes: 0, node: None, controllers: false, keep: false };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    // Whoever has the port answers, but not as our component would. This thread ends with the test process.
    thread::spawn(move || taken.incoming().for_each(drop));
    let free = start::Ports::choose().unwrap();
    for ports in [start::Ports { etcd: port, ..free }, start::Ports { kube_apiserver: port, ..free }] {
        let error = start::start(&binaries, &options, ports).unwrap_err();
        assert!(port_was_taken(&error), "{error:#}");
    }
}
