//! The worst answers on a real control plane.

use kit::worst;

use crate::real::Real;

pub(crate) const NAME: &str = "a host of 512 MiB lives through the worst answers, and serves their neighbour";

pub(crate) async fn check(real: &Real<'_>) -> anyhow::Result<()> {
    real.stop_host_if_it_runs().await?;
    worst::check(real, real.kubeconfig(), &real.log(), &[]).await?;
    worst::clean_up(real).await?;
    for namespace in worst::NAMESPACES {
        real.delete_namespace(namespace)?;
    }
    Ok(())
}
