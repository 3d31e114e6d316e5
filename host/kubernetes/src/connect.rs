//! Connects to a cluster: the flags that choose the cluster and the user, and the client.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context;
use http::{HeaderValue, header};
use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};

use super::observer::{Observer, ObserverLayer};

/// The flags that name a cluster.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct Connect {
    /// Path to the kubeconfig file [default: $KUBECONFIG, ~/.kube/config, or the service account of the Pod]
    #[arg(long, value_name = "FILE", global = true)]
    pub kubeconfig: Option<PathBuf>,
    /// Name of the kubeconfig context to use [default: the current context]
    #[arg(long, value_name = "NAME", global = true)]
    pub context: Option<String>,
}

impl Connect {
    /// How to reach the cluster.
    ///
    /// # Errors
    /// When there is no usable kubeconfig and this is no Pod either.
    pub async fn config(&self) -> anyhow::Result<Config> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match &self.kubeconfig {
            Some(path) => {
                let file = Kubeconfig::read_from(path)
                    .with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
                Config::from_custom_kubeconfig(file, &options)
                    .await
                    .with_context(|| format!("the kubeconfig {} names no usable cluster", path.display()))?
            }
            None if self.context.is_some() => {
                Config::from_kubeconfig(&options).await.context("the kubeconfig has no such context")?
            }
            None => Config::infer()
                .await
                .context("no cluster: set KUBECONFIG, pass --kubeconfig, or run in a Pod")?,
        };
        // The code that knows the meaning of a request decides on retries. The client's own retry can hold a call for minutes.
        config.default_retry = false;
        Ok(config)
    }

    /// A client of the cluster that reports every call to an observer. Its user agent names this process, so that the audit log shows which
    /// process made a call.
    ///
    /// # Errors
    /// As [`Connect::config`].
    pub async fn client_of(&self, identity: &str, observer: Arc<dyn Observer>) -> anyhow::Result<Client> {
        let mut config = self.config().await?;
        config.headers.push((header::USER_AGENT, agent("pintle", identity)?));
        let builder = ClientBuilder::try_from(config).context("cannot make a client of the cluster")?;
        Ok(builder.with_layer(&ObserverLayer(observer)).build())
    }

    /// A client for the console: its user agent tells what people do in it from what this process does by itself.
    ///
    /// # Errors
    /// As [`Connect::config`].
    pub async fn console_client(&self, identity: &str) -> anyhow::Result<Client> {
        let mut config = self.config().await?;
        config.headers.push((header::USER_AGENT, agent("pintle-console", identity)?));
        Client::try_from(config).context("cannot make a client of the cluster")
    }

    /// A client for callers that bring their own token: it knows the cluster and its CA, and shows nothing of its own. The API server looks
    /// at a client certificate before it looks at a token, so a token over any other connection would count for nothing.
    ///
    /// # Errors
    /// As [`Connect::config`].
    pub async fn client_of_nobody(&self, identity: &str) -> anyhow::Result<Client> {
        let mut config = self.config().await?;
        config.auth_info = AuthInfo::default();
        config.headers.retain(|(name, _)| *name != header::AUTHORIZATION);
        config.headers.push((header::USER_AGENT, agent("pintle-console", identity)?));
        Client::try_from(config).context("cannot make a client of the cluster")
    }

    /// The name of the context, if the cluster is reached by a kubeconfig.
    pub fn context_name(&self) -> Option<String> {
        self.context.clone().or_else(|| self.file()?.current_context)
    }

    /// The namespace that the context names, if it names one.
    pub fn context_namespace(&self) -> Option<String> {
        let (name, file) = (self.context_name()?, self.file()?);
        let named = file.contexts.into_iter().find(|context| context.name == name)?;
        named.context?.namespace.filter(|namespace| !namespace.is_empty())
    }

    fn file(&self) -> Option<Kubeconfig> {
        let read = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        read.ok()
    }

    /// A client of the cluster.
    ///
    /// # Errors
    /// As [`Connect::config`].
    pub async fn client(&self) -> anyhow::Result<Client> {
        Client::try_from(self.config().await?).context("cannot make a client of the cluster")
    }
}

fn agent(name: &str, identity: &str) -> anyhow::Result<HeaderValue> {
    let agent = format!("{name}/{} ({identity})", env!("CARGO_PKG_VERSION"));
    HeaderValue::from_str(&agent).context("the identity of this process fits into no header")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_client_of_nobody_shows_no_token_and_keeps_the_way_to_the_cluster() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let file = serde_json::json!({
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "blog"}},
                {"name": "there", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": "own-token"}}], "current-context": "here",
        });
        std::fs::write(&path, file.to_string()).unwrap();
        let there = Connect { kubeconfig: Some(path.clone()), context: Some("there".into()) };
        assert_eq!(there.context_namespace(), None, "a default would stand for all of them");
        let connect = Connect { kubeconfig: Some(path), context: None };
        assert_eq!(connect.context_name().as_deref(), Some("here"));
        assert_eq!(connect.context_namespace().as_deref(), Some("blog"));
        let asked = tokio::spawn(async move {
            let mut heads = Vec::new();
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = vec![0; 4096];
                let read = stream.read(&mut head).await.unwrap();
                heads.push(String::from_utf8_lossy(&head[..read]).to_lowercase());
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
                    .await
                    .unwrap();
            }
            heads
        });
        for client in [connect.client().await.unwrap(), connect.client_of_nobody("me").await.unwrap()] {
            let request = http::Request::get("/version").body(kube::client::Body::empty()).unwrap();
            client.send(request).await.unwrap();
        }
        let heads = asked.await.unwrap();
        assert!(heads[0].contains("own-token"), "{}", heads[0]);
        assert!(!heads[1].contains("own-token") && !heads[1].contains("authorization"), "{}", heads[1]);
        assert!(heads[1].contains("pintle-console/"), "{}", heads[1]);
    }

    #[tokio::test]
    async fn the_client_retries_nothing_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let file = serde_json::json!({
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": "t"}}], "current-context": "c",
        });
        std::fs::write(&path, file.to_string()).unwrap();
        let connect = Connect { kubeconfig: Some(path), context: None };
        assert!(!connect.config().await.unwrap().default_retry, "it could hold a pass for minutes");
    }
}
