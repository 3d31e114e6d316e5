use pintle_simulator::{Act, ApiServer, Options};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use tokio::time::advance;

use super::*;
use crate::{identity::issuer::now, reviews::tests::with_clock, tls::rotation::SETTLES};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A replica of the gateway.
struct Replica {
    keeper: Keeper,
    served: Served,
    bundle: watch::Receiver<String>,
    carried: watch::Sender<Option<Vec<String>>>,
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
    let (served, (tell, bundle), (carried, told)) =
        (Served::default(), watch::channel(String::new()), watch::channel(None));
    let keeper = Keeper::new(cluster, "pintle-system", "pintle-gateway", served.clone(), tell, told);
    Replica { keeper, served, bundle, carried }
}

impl Replica {
    /// The certificate that it shows.
    fn shows(&self) -> CertificateDer<'static> {
        self.served.0.read().unwrap().as_ref().unwrap().cert[0].clone()
    }

    /// Every APIService has what this replica says.
    fn publish(&self) {
        let bundle = self.bundle.borrow().clone();
        self.carried.send_replace(Some(vec![bundle.clone(), bundle]));
    }

    /// Takes rounds until there is nothing to do at once, and returns for how long.
    async fn settle(&mut self) -> Duration {
        for _ in 0..10 {
            let delay = self.keeper.round().await.unwrap();
            if !delay.is_zero() {
                return delay;
            }
        }
        panic!("it does not rest");
    }
}

fn secret(server: &ApiServer) -> Value {
    let reference = ObjectRef {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: Some("pintle-system".into()),
        name: SECRET.into(),
    };
    (*server.object(&reference).unwrap()).clone()
}

#[tokio::test(start_paused = true)]
async fn replicas_that_start_at_once_share_the_certificate_of_the_first() {
    with_clock(async {
        let server = server();
        let (mut one, mut two) = (replica(&server), replica(&server));
        // Both find nothing, and both make one.
        let (first, second) = tokio::join!(one.keeper.read(), two.keeper.read());
        assert!(first.unwrap().is_none() && second.unwrap().is_none());
        let made = || begun(&make(&one.keeper.names, now()).unwrap());
        let (a, b) = (made(), made());
        one.keeper.write(None, &a).await.unwrap();
        two.keeper.write(None, &b).await.unwrap();
        assert_eq!(decoded(&secret(&server))["tls.crt"], a["tls.crt"].clone().unwrap());
        tokio::join!(one.settle(), two.settle());
        assert_eq!(one.shows(), two.shows());
        assert_eq!(
            one.shows(),
            CertificateDer::from_pem_slice(a["tls.crt"].clone().unwrap().as_bytes()).unwrap()
        );
        assert_eq!(*one.bundle.borrow(), *two.bundle.borrow());
        assert_eq!(secret(&server)["type"], "kubernetes.io/tls");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_late_does_not_write_over_what_another_did() {
    with_clock(async {
        let server = server();
        let (mut one, mut two) = (replica(&server), replica(&server));
        one.settle().await;
        let late = two.keeper.read().await.unwrap();
        advance(61 * DAY).await;
        one.settle().await;
        let prepared = secret(&server);
        assert!(prepared["data"]["next.crt"].is_string());
        let change =
            late.as_ref().unwrap().held.as_ref().unwrap().prepared(&make(&two.keeper.names, now()).unwrap());
        two.keeper.write(late.as_ref(), &change).await.unwrap();
        assert_eq!(secret(&server), prepared);
        two.settle().await;
        assert_eq!(secret(&server), prepared);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_replaced_when_every_api_service_trusts_the_next_one() {
    with_clock(async {
        let server = server();
        let (mut one, mut two) = (replica(&server), replica(&server));
        one.settle().await;
        two.settle().await;
        one.publish();
        let (first, old_bundle) = (one.shows(), one.bundle.borrow().clone());
        advance(61 * DAY).await;
        assert_eq!(one.settle().await, READ_EVERY_WHILE_PUBLISHING);
        let bundle = one.bundle.borrow().clone();
        assert!(bundle.starts_with(&old_bundle) && bundle.len() > old_bundle.len());
        // One of the two APIServices has not got it.
        one.carried.send_replace(Some(vec![bundle.clone(), old_bundle]));
        advance(SETTLES * 2).await;
        assert_eq!(one.settle().await, READ_EVERY_WHILE_PUBLISHING);
        one.publish();
        assert_eq!(one.settle().await, READ_EVERY_WHILE_PUBLISHING);
        advance(SETTLES).await;
        // What its APIServices have is not known to the other one.
        assert_eq!((two.settle().await, two.shows()), (READ_EVERY_WHILE_PUBLISHING, first.clone()));
        assert_eq!(one.settle().await, READ_EVERY);
        assert_ne!(one.shows(), first);
        assert!(secret(&server)["data"].get("next.key").is_none());
        two.settle().await;
        assert_eq!((two.shows(), &*two.bundle.borrow()), (one.shows(), &bundle));
        // The first CA ends.
        advance(30 * DAY).await;
        one.settle().await;
        assert!(bundle.ends_with(&*one.bundle.borrow()) && bundle.len() > one.bundle.borrow().len());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_somebody_has_spoilt_is_replaced() {
    with_clock(async {
        let server = server();
        let spoilt = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": "pintle-system"},
            "data": {"tls.crt": BASE64_STANDARD.encode("nonsense"), "next.crt": ""},
        });
        server.act("test", &Act::Create(spoilt)).unwrap();
        let mut one = replica(&server);
        assert_eq!(one.settle().await, READ_EVERY);
        assert!(one.served.is_set());
        assert_eq!(
            decoded(&secret(&server)).into_keys().collect::<Vec<_>>(),
            ["ca.crt", "tls.crt", "tls.key"]
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn it_goes_on_after_an_error_and_when_nobody_says_what_api_services_have() {
    with_clock(async {
        let server = ApiServer::new(Options::default());
        let Replica { keeper, served, mut bundle, carried } = replica(&server);
        drop(carried);
        let keeping = keeper.keep();
        tokio::pin!(keeping);
        // There is no such namespace yet.
        assert!(tokio::time::timeout(RETRY * 3, &mut keeping).await.is_err());
        assert!(!served.is_set());
        make_namespace(&server);
        assert!(tokio::time::timeout(RETRY * 3, &mut keeping).await.is_err());
        assert!(served.is_set() && bundle.has_changed().unwrap());
        assert!(bundle.borrow_and_update().starts_with("-----BEGIN CERTIFICATE-----"));
    })
    .await;
}
