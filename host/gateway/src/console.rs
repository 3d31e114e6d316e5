//! The gateway's third door: the console, for people who bring a token.
//!
//! Nothing of the gateway's own is used for them. Their requests are sent on over connections of a client that has the cluster's CA and no
//! certificate, no token and no key of its own, because the API server looks at a certificate before it looks at a token.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use pintle_console::{
    self as console, About, App, Assets, Door, Memory, Parts, REQUESTS, Shop, Users, Watches, Workshop,
};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};
use tokio_rustls::TlsAcceptor;
use tracing::info;

use crate::{
    Flags,
    documents::Documents,
    tls::{self, Files, Served},
};

/// The console, bound and not yet serving.
pub(crate) struct Console {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    door: Door,
    upstream: kube::Client,
    cluster: String,
    parts: Parts,
}

impl Console {
    /// Binds its address, and reads its certificate.
    ///
    /// # Errors
    /// When tokens would cross a network in the clear unasked, the address is taken, or the files hold no certificate.
    pub(crate) async fn bind(
        address: SocketAddr,
        flags: &Flags,
        identity: &str,
        parts: Parts,
    ) -> anyhow::Result<Self> {
        is_private(address, flags)?;
        let files = flags.console_tls_cert_file.clone().zip(flags.console_tls_private_key_file.clone());
        let tls = match files {
            None => None,
            Some((certificate, key)) => {
                let (served, files) = (Served::default(), Files { certificate, key });
                let first = files
                    .serve(&served)
                    .context("the console's certificate in the files cannot be served")?;
                parts.spawner.spawn_lasting(files.follow(served.clone(), first, parts.spawner.clone()));
                Some(TlsAcceptor::from(tls::config_for_people(served)?))
            }
        };
        Ok(Self {
            listener: TcpListener::bind(address)
                .await
                .with_context(|| format!("cannot listen on {address} (--console-bind)"))?,
            tls,
            door: Door::token(flags.console_host.clone(), flags.console_cors_origin.clone()),
            upstream: flags.connect.client_of_nobody(identity).await?,
            cluster: flags.connect.config().await?.cluster_url.to_string(),
            parts,
        })
    }

    /// Serves the pages, the API and these documents, until this becomes true.
    pub(crate) async fn serve(self, documents: Documents, stopping: watch::Receiver<bool>) {
        let Self { listener, tls, door, upstream, cluster, parts } = self;
        let memory = Memory::new(parts.budget.clone());
        let shop = Shop::default();
        shop.open(Workshop::new(parts));
        let mut stops = stopping.clone();
        let address =
            listener.local_addr().map_or_else(|error| error.to_string(), |address| address.to_string());
        info!(address, tls = tls.is_some(), "The console is served");
        let app = App {
            door,
            upstream,
            memory,
            assets: Assets::Embedded,
            documents: Arc::new(documents),
            about: About {
                version: env!("CARGO_PKG_VERSION").into(),
                cluster,
                context: None,
                namespace: None,
            },
            serves_tls: tls.is_some(),
            stopping,
            users: Users::default(),
            requests: Semaphore::new(REQUESTS),
            watches: Watches::default(),
            shop,
        };
        let stop = async move {
            // Without a sender nobody can stop it any more, so that it stops.
            let _ = stops.wait_for(|stops| *stops).await;
        };
        console::serve(vec![listener], tls, console::router(Arc::new(app)), stop).await;
    }
}

/// Whether whoever listens to the network reads no tokens, or somebody has said by name that this is seen to elsewhere. What is sent to
/// loopback crosses no network.
fn is_private(address: SocketAddr, flags: &Flags) -> anyhow::Result<()> {
    let has_tls = flags.console_tls_cert_file.is_some();
    match has_tls || address.ip().is_loopback() || flags.console_insecure_http {
        true => Ok(()),
        false => anyhow::bail!(
            "the console at {address} (--console-bind) would take tokens without TLS: give --console-tls-cert-file and \
             --console-tls-private-key-file; or, if something before it has TLS, --console-insecure-http"
        ),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        flags: Flags,
    }

    fn flags(arguments: &[&str]) -> Result<Flags, clap::Error> {
        let given = ["gateway", "--console-host", "console.example.com"].iter().chain(arguments);
        Command::try_parse_from(given).map(|command| command.flags)
    }

    #[test]
    fn a_console_without_tls_is_served_to_a_network_only_if_somebody_says_so_by_name() {
        let files = ["--console-tls-cert-file", "a", "--console-tls-private-key-file", "b"];
        for (bind, more, is_served) in [
            ("0.0.0.0:8444", &[][..], false),
            ("[::]:8444", &[], false),
            ("10.0.0.1:8444", &[], false),
            ("0.0.0.0:8444", &["--console-insecure-http"], true),
            ("0.0.0.0:8444", &files, true),
            ("127.0.0.1:8444", &[], true),
            ("[::1]:8444", &[], true),
        ] {
            let flags = flags(&[&["--console-bind", bind], more].concat()).unwrap();
            let said = is_private(flags.console_bind.unwrap(), &flags);
            assert_eq!(said.is_ok(), is_served, "{bind} {more:?}");
            let why = said.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(is_served || why.contains("--console-insecure-http"), "{why}");
        }
        let both = [&["--console-bind", "0.0.0.0:8444", "--console-insecure-http"][..], &files].concat();
        assert!(flags(&both).is_err(), "one of both is not what is meant");
    }
}
