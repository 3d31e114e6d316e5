//! Nobody reaches a gateway but the API server's front proxy, and a gateway that cannot ask for reviews lets nobody in.

use anyhow::{Context as _, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderValue, Request};
use kube::{Client, Config, config::AuthInfo};
use pintle_kubernetes::connect::Connect;

use super::{Farm, NAMESPACE};

/// The farm, as a path.
const LLAMAS: &str = "/apis/farm.example.com/v1alpha/namespaces/farm/llamas";

impl Farm<'_> {
    pub(super) async fn callers_are_who_the_api_server_says(&self) -> anyhow::Result<()> {
        let connect = Connect { kubeconfig: Some(self.plane.kubeconfig().to_owned()), context: None };
        let admin = connect.config().await?.auth_info;
        // As the front proxy's, but of an authority that the cluster does not know.
        let key = rcgen::KeyPair::generate()?;
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, "front-proxy-client");
        params.extended_key_usages.push(rcgen::ExtendedKeyUsagePurpose::ClientAuth);
        let certificate = params.self_signed(&key)?;
        let stranger = AuthInfo {
            client_certificate_data: Some(BASE64_STANDARD.encode(certificate.pem())),
            client_key_data: Some(BASE64_STANDARD.encode(key.serialize_pem()).into()),
            ..AuthInfo::default()
        };
        for (who, auth) in [
            ("whoever shows no certificate", AuthInfo::default()),
            ("an administrator", admin),
            ("a front proxy of an unknown authority", stranger),
        ] {
            ensure!(!self.is_answered(auth).await?, "a gateway answers {who}");
        }
        self.what_cannot_be_asked_is_not_allowed()
    }

    /// Without the right to ask for reviews, a gateway lets nobody in.
    fn what_cannot_be_asked_is_not_allowed(&self) -> anyhow::Result<()> {
        // The API server lets herders through. The gateway asks for itself.
        self.run(
            &format!("create rolebinding herders --clusterrole=view --group=herders --namespace={NAMESPACE}"),
            None,
        )?;
        let list = "get llamas --as=herder --as-group=herders";
        pintle_testbed::eventually("herders may list llamas", || self.succeeds(list))?;
        self.run("delete clusterrolebinding pintle-gateway-auth-delegator", None)?;
        let mut number = 0;
        let refused = pintle_testbed::eventually("nobody is let in any more", || {
            number += 1;
            // A name that nobody has had yet.
            let (_, said) = self.kubectl(&format!("get llamas --as=herder-{number} --as-group=herders"))?;
            let is_refused = said.contains("the API server did not say whether this is allowed");
            Ok(kit::Look::reached_if(is_refused, || said))
        });
        self.run(&format!("apply --server-side --filename={}", super::in_deploy("gateway.yaml")), None)?;
        self.serve(&super::in_deploy("samples/farm/apiservice.yaml"))?;
        pintle_testbed::eventually("reviews are answered again", || self.succeeds("get llamas --as=ann"))?;
        refused
    }

    /// Whether a gateway answers somebody at all, who says to be the front proxy of Ann.
    async fn is_answered(&self, auth: AuthInfo) -> anyhow::Result<bool> {
        let gateway = self.gateways.iter().flatten().next().context("a gateway")?;
        let mut config = Config::new(format!("https://{}", gateway.address).parse()?);
        // Its certificate is for the name of its Service.
        config.accept_invalid_certs = true;
        config.default_retry = false;
        config.auth_info = auth;
        let mut request = Request::get(LLAMAS).body(Vec::new())?;
        request.headers_mut().insert("x-remote-user", HeaderValue::from_static("ann"));
        let answer = Client::try_from(config)?.request_text(request).await;
        Ok(matches!(answer, Ok(_) | Err(kube::Error::Api(_))))
    }
}
