//! Who a caller is, for whoever reaches a gateway without the API server: nobody is taken for somebody else.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use http::{HeaderName, HeaderValue, Request};
use kit::{Look, eventually, host::or_error};
use kube::{Client, Config, config::AuthInfo};
use pintle_kubernetes::connect::Connect;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use serde_json::json;

use super::{Farm, NAMESPACE};

/// The farm, as a path.
const LLAMAS: &str = "/apis/farm.example.com/v1alpha/namespaces/farm/llamas";

impl Farm<'_> {
    pub(super) async fn callers_are_who_they_prove_to_be(&self) -> anyhow::Result<()> {
        // The keys of somebody else's cluster are not ours to sign with.
        if self.plane.audit_log().is_none() {
            println!(
                "        skipped: who a caller of the gateway is, no keys of the cluster and no audit log"
            );
            return Ok(());
        }
        self.headers_prove_nothing().await?;
        self.certificates_are_of_the_clusters_authorities().await?;
        self.tokens_are_judged_by_the_api_server().await?;
        self.names_are_decoded_before_anything_is_asked().await?;
        self.what_cannot_be_asked_is_not_allowed().await
    }

    /// Only the front proxy says who somebody else is, and only the API server impersonates.
    async fn headers_prove_nothing(&self) -> anyhow::Result<()> {
        for header in [
            None,
            Some("x-remote-user"),
            Some("x-remote-group"),
            Some("x-remote-uid"),
            Some("impersonate-user"),
            Some("impersonate-group"),
            Some("impersonate-extra-a"),
        ] {
            let pretends = Caller { header: header.map(|header| (header, "ann")), ..Caller::default() };
            let said = self.said(&pretends, LLAMAS).await?;
            let impersonates = header.is_some_and(|header| header.starts_with("impersonate"));
            let is_nobody =
                if impersonates { !said.contains("\"ann\"") } else { said.contains("system:anonymous") };
            ensure!(said.starts_with("403") && is_nobody, "{header:?}: {said}");
        }
        Ok(())
    }

    async fn certificates_are_of_the_clusters_authorities(&self) -> anyhow::Result<()> {
        let connect = Connect { kubeconfig: Some(self.plane.kubeconfig().to_owned()), context: None };
        let admin = Caller { auth: connect.config().await?.auth_info, ..Caller::default() };
        // As the administrator's, but of an authority that the cluster does not know.
        let key = rcgen::KeyPair::generate()?;
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, "ann");
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "system:masters");
        params.extended_key_usages.push(rcgen::ExtendedKeyUsagePurpose::ClientAuth);
        let certificate = params.self_signed(&key)?;
        let auth = AuthInfo {
            client_certificate_data: Some(BASE64_STANDARD.encode(certificate.pem())),
            client_key_data: Some(BASE64_STANDARD.encode(key.serialize_pem()).into()),
            ..AuthInfo::default()
        };
        let stranger = Caller { auth: auth.clone(), ..Caller::default() };
        let proxy = Caller { auth, header: Some(("x-remote-user", "ann")) };
        for (what, caller, code) in [
            ("the administrator's certificate", admin, "200"),
            ("a certificate of an unknown authority", stranger, "401"),
            ("a front proxy of an unknown authority", proxy, "401"),
        ] {
            let said = self.said(&caller, LLAMAS).await?;
            ensure!(said.starts_with(code), "{what}: {said}");
        }
        Ok(())
    }

    async fn tokens_are_judged_by_the_api_server(&self) -> anyhow::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let good = Caller::with_token(&self.token(now + 600)?);
        let said = self.said(&good, LLAMAS).await?;
        let account = format!("system:serviceaccount:{NAMESPACE}:default");
        ensure!(said.starts_with("403") && said.contains(&account), "a token without rights: {said}");
        self.run(&format!("create rolebinding viewer --clusterrole=view --serviceaccount={NAMESPACE}:default --namespace={NAMESPACE}"), None)?;
        // What was refused is remembered for ten seconds.
        let other = Caller::with_token(&self.token(now + 601)?);
        eventually("a token with rights is let in", async || {
            let said = self.said(&other, &format!("{LLAMAS}/dolly")).await;
            or_error(said.map(|said| Look::reached_if(said.starts_with("200"), || said)))
        })
        .await?;
        for (what, token) in [("expired", self.token(now - 60)?), ("made up", "a.b.c".to_owned())] {
            let said = self.said(&Caller::with_token(&token), LLAMAS).await?;
            ensure!(said.starts_with("401"), "a token that is {what}: {said}");
        }
        Ok(())
    }

    async fn names_are_decoded_before_anything_is_asked(&self) -> anyhow::Result<()> {
        let pods = LLAMAS.replace("llamas", "farmpods");
        for (path, code) in [
            (format!("{pods}/farm-x%2Flog"), "400"),
            (format!("{pods}/farm-x%2flog"), "400"),
            (format!("{LLAMAS}/%2e%2e"), "400"),
            (LLAMAS.replace("/farm/", "/a%2Fb/"), "400"),
            // No object has such a name, which whoever may read llamas is told. Nobody else is.
            (format!("{LLAMAS}/a%3Fwatch=1"), "403"),
            (format!("{LLAMAS}/a%00"), "403"),
        ] {
            let said = self.said(&Caller::default(), &path).await?;
            ensure!(said.starts_with(code), "{path}: {said}");
        }
        Ok(())
    }

    /// Without the right to ask for reviews, a gateway lets nobody in.
    async fn what_cannot_be_asked_is_not_allowed(&self) -> anyhow::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        // The API server lets herders through. The gateway asks for itself.
        self.run(
            &format!("create rolebinding herders --clusterrole=view --group=herders --namespace={NAMESPACE}"),
            None,
        )?;
        let list = "get llamas --as=herder --as-group=herders";
        pintle_testbed::eventually("herders may list llamas", || self.succeeds(list))?;
        self.run("delete clusterrolebinding pintle-gateway-auth-delegator", None)?;
        let mut number = 0;
        let refused = eventually("nobody is let in any more", async || {
            number += 1;
            // A token that nobody has shown yet, and a name that nobody has had yet.
            let said = self.said(&Caller::with_token(&self.token(now + 700 + number)?), LLAMAS).await?;
            let (_, through) =
                self.kubectl(&format!("get llamas --as=herder-{number} --as-group=herders"))?;
            let is_refused = said.starts_with("401")
                && through.contains("the API server did not say whether this is allowed");
            Ok(Look::reached_if(is_refused, || format!("{said}\n{through}")))
        })
        .await;
        self.run(&format!("apply --server-side --filename={}", super::in_deploy("gateway.yaml")), None)?;
        self.serve(&super::in_deploy("samples/farm/apiservice.yaml"))?;
        pintle_testbed::eventually("reviews are answered again", || self.succeeds("get llamas --as=ann"))?;
        refused
    }

    /// What a gateway answers: the code, and the message of its Status.
    async fn said(&self, caller: &Caller, path: &str) -> anyhow::Result<String> {
        let gateway = self.gateways.iter().flatten().next().context("a gateway")?;
        let mut config = Config::new(format!("https://{}", gateway.address).parse()?);
        // Its certificate is for the name of its Service.
        config.accept_invalid_certs = true;
        config.default_retry = false;
        config.auth_info = caller.auth.clone();
        let mut request = Request::get(path).body(Vec::new())?;
        if let Some((name, value)) = caller.header {
            request.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        match Client::try_from(config)?.request_text(request).await {
            Ok(body) => Ok(format!("200 {body}")),
            Err(kube::Error::Api(status)) => Ok(format!("{} {}", status.code, status.message)),
            Err(error) => Err(error.into()),
        }
    }

    /// A token of the default ServiceAccount, as the API server signs them, that ends at this second of the epoch.
    fn token(&self, until: u64) -> anyhow::Result<String> {
        let uid = self.field(&format!("serviceaccount default --namespace={NAMESPACE}"), ".metadata.uid")?;
        let claims = json!({
            "iss": "https://kubernetes.default.svc", "aud": ["https://kubernetes.default.svc"],
            "sub": format!("system:serviceaccount:{NAMESPACE}:default"),
            "iat": until - 1_000, "nbf": until - 1_000, "exp": until,
            "kubernetes.io": {"namespace": NAMESPACE, "serviceaccount": {"name": "default", "uid": uid}},
        });
        let part = |value: &serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({"alg": "ES256", "typ": "JWT"})), part(&claims));
        let pem = std::fs::read_to_string(self.plane.directory().join("pki/service-account.key"))?;
        let key: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            &BASE64_STANDARD.decode(key)?,
            &random,
        );
        let key = key.map_err(|error| anyhow::anyhow!("the key of service accounts: {error}"))?;
        let signature = key.sign(&random, signed.as_bytes()).map_err(|_| anyhow::anyhow!("signing"))?;
        Ok(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// Whoever asks a gateway, and what it shows about itself.
#[derive(Default)]
struct Caller {
    auth: AuthInfo,
    header: Option<(&'static str, &'static str)>,
}

impl Caller {
    fn with_token(token: &str) -> Self {
        Self { auth: AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() }, header: None }
    }
}
