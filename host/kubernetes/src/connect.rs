//! Connects to a cluster: the flags that choose the cluster and the user, and the client.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context;
use http::{HeaderValue, header};
use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
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
        let agent = format!("pintle/{} ({identity})", env!("CARGO_PKG_VERSION"));
        let agent = HeaderValue::from_str(&agent).context("the host's identity fits into no header")?;
        config.headers.push((header::USER_AGENT, agent));
        let builder = ClientBuilder::try_from(config).context("cannot make a client of the cluster")?;
        Ok(builder.with_layer(&ObserverLayer(observer)).build())
    }

    /// A client of the cluster.
    ///
    /// # Errors
    /// As [`Connect::config`].
    pub async fn client(&self) -> anyhow::Result<Client> {
        Client::try_from(self.config().await?).context("cannot make a client of the cluster")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
