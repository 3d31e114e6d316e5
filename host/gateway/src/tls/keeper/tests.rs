use pintle_simulator::{Act, ApiServer, Cascade, Options};
use rustls::pki_types::CertificateDer;
use tokio::time::advance;

use super::*;
use crate::reviews::tests::with_clock;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A replica of the gateway.
struct Replica {
    keeper: Keeper,
    served: Served,
    bundle: watch::Receiver<String>,
}

fn make_namespace(server: &ApiServer) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "pintle-system"}});
    server.act("test", &Act::Create(namespace)).unwrap();
}

fn server() -> ApiServer {
    let server = ApiServer::new(Options::default());
    make_namespace(&server);
    server
}

fn replica(server: &ApiServer) -> Replica {
    let cluster = Cluster::new(kube::Client::new(server.service("gateway"), "default"));
    let (served, (tell, bundle)) = (Served::default(), watch::channel(String::new()));
    let keeper = Keeper::new(cluster, "pintle-system", "pintle-gateway", served.clone(), tell);
    Replica { keeper, served, bundle }
}

impl Replica {
    /// The certificate that it shows.
    fn shows(&self) -> CertificateDer<'static> {
        self.served.0.read().unwrap().as_ref().unwrap().cert[0].clone()
    }

    fn trusts(&self) -> String {
        self.bundle.borrow().clone()
    }
}

fn reference() -> ObjectRef {
    ObjectRef {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: Some("pintle-system".into()),
        name: SECRET.into(),
    }
}

#[tokio::test(start_paused = true)]
async fn replicas_share_the_ca_of_the_first_and_each_signs_its_own_certificate() {
    with_clock(async {
        let server = server();
        let (mut one, mut two) = (replica(&server), replica(&server));
        let (first, second) = tokio::join!(one.keeper.make(), two.keeper.make());
        assert_eq!(first.unwrap(), second.unwrap(), "of two that were made at once, one is kept");
        one.keeper.round().await.unwrap();
        two.keeper.round().await.unwrap();
        assert_eq!(one.trusts(), two.trusts());
        assert!(one.trusts().starts_with("-----BEGIN CERTIFICATE-----"));
        assert_ne!(one.shows(), two.shows());
        assert_eq!(server.object(&reference()).unwrap()["type"], "kubernetes.io/tls");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_signed_again_after_sixty_days_without_a_restart() {
    with_clock(async {
        let server = server();
        let mut one = replica(&server);
        one.keeper.round().await.unwrap();
        let (first, bundle) = (one.shows(), one.trusts());
        advance(59 * DAY).await;
        one.keeper.round().await.unwrap();
        assert_eq!(one.shows(), first);
        advance(2 * DAY).await;
        one.keeper.round().await.unwrap();
        assert_ne!(one.shows(), first);
        assert_eq!(one.trusts(), bundle);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_deletes_the_secret_has_every_replica_take_up_another_ca() {
    with_clock(async {
        let server = server();
        let (mut one, mut two) = (replica(&server), replica(&server));
        one.keeper.round().await.unwrap();
        two.keeper.round().await.unwrap();
        let (first, bundle) = (one.shows(), one.trusts());
        server.act("test", &Act::Delete { target: reference(), cascade: Cascade::Background }).unwrap();
        two.keeper.round().await.unwrap();
        one.keeper.round().await.unwrap();
        assert_eq!(one.trusts(), two.trusts());
        assert_ne!(one.trusts(), bundle);
        assert_ne!(one.shows(), first);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_somebody_has_spoilt_is_left_as_it_is_and_the_error_says_what_to_do() {
    with_clock(async {
        let server = server();
        let data = json!({"tls.crt": BASE64_STANDARD.encode("nonsense"), "tls.key": ""});
        let spoilt = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": "pintle-system"},
            "data": data,
        });
        server.act("test", &Act::Create(spoilt)).unwrap();
        let mut one = replica(&server);
        let refused = one.keeper.round().await.unwrap_err().to_string();
        assert!(refused.contains("delete the Secret"), "{refused}");
        assert!(!one.served.is_set());
        assert_eq!(server.object(&reference()).unwrap()["data"], data);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn it_goes_on_after_an_error() {
    with_clock(async {
        let server = ApiServer::new(Options::default());
        let Replica { keeper, served, bundle } = replica(&server);
        let keeping = keeper.keep();
        tokio::pin!(keeping);
        // There is no such namespace yet.
        assert!(tokio::time::timeout(RETRY * 3, &mut keeping).await.is_err());
        assert!(!served.is_set());
        make_namespace(&server);
        assert!(tokio::time::timeout(RETRY * 3, &mut keeping).await.is_err());
        assert!(served.is_set() && bundle.has_changed().unwrap());
    })
    .await;
}
