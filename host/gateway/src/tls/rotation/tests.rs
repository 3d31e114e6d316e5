use std::collections::BTreeSet;

use jiff::ToSpan;

use super::*;
use crate::{
    identity::issuer::{TestIssuer, now},
    tls::made::{VALID, make},
};

type Data = BTreeMap<String, String>;

fn names() -> Vec<String> {
    ["g.pintle-system.svc.cluster.local", "g.pintle-system.svc"].map(Into::into).into()
}

fn after(days: i64) -> Timestamp {
    now() + (days * 24).hours()
}

fn changed(data: &Data, change: Change) -> Data {
    let mut data = data.clone();
    for (key, value) in change {
        match value {
            Some(value) => drop(data.insert(key.to_owned(), value)),
            None => drop(data.remove(key)),
        }
    }
    data
}

fn first() -> Data {
    changed(&Data::new(), begun(&make(&names(), now()).unwrap()))
}

fn held(data: &Data) -> Held {
    Held::read(data).unwrap()
}

fn step(data: &Data, carried_for: Option<Duration>, now: Timestamp) -> Step {
    decide(Held::read(data).ok().as_ref(), &names(), carried_for, now)
}

/// Whether somebody with this bundle trusts who shows this certificate.
fn trusts(bundle: &str, shown: &Pair, now: Timestamp) -> bool {
    let certificate = CertificateDer::from_pem_slice(shown.certificates.as_bytes()).unwrap();
    vouched_for(&certificate, &authorities(bundle).unwrap(), now).is_ok()
}

#[test]
fn a_certificate_is_replaced_step_by_step() {
    assert_eq!(step(&Data::new(), None, now()), Step::Begin);
    let data = first();
    let renew_at = held(&data).current.valid.renew_at();
    assert!(after(59) < renew_at && renew_at < after(61), "{renew_at}");
    assert_eq!(step(&data, None, now()), Step::Rest(renew_at));
    assert_eq!(step(&data, None, renew_at), Step::Prepare);

    let prepared = changed(&data, held(&data).prepared(&make(&names(), renew_at).unwrap()));
    assert_eq!(held(&prepared).current(), held(&data).current(), "nothing else is shown yet");
    assert!(!held(&prepared).is_carried_by(&held(&data).bundle()));
    let published = held(&prepared).bundle();
    assert!(held(&prepared).is_carried_by(&published) && held(&data).is_carried_by(&published));
    let soon = SETTLES - Duration::from_secs(1);
    assert_eq!(step(&prepared, None, renew_at), Step::Publish);
    assert_eq!(step(&prepared, Some(soon), renew_at), Step::Publish);
    assert_eq!(step(&prepared, Some(SETTLES), renew_at), Step::TakeUp);

    let taken_up = changed(&prepared, held(&prepared).taken_up());
    assert_ne!(held(&taken_up).current(), held(&data).current());
    assert_eq!(held(&taken_up).bundle(), published);
    let end = now() + VALID;
    assert_eq!(step(&taken_up, Some(SETTLES), renew_at), Step::Rest(end), "the first CA leaves when it ends");
    assert_eq!(step(&taken_up, None, end), Step::Forget);

    let forgotten = changed(&taken_up, held(&taken_up).forgotten(end));
    assert_eq!(held(&forgotten).authorities.len(), 1);
    assert_eq!(held(&forgotten).current(), held(&taken_up).current());
    assert_eq!(step(&forgotten, None, end), Step::Rest(held(&forgotten).current.valid.renew_at()));
}

/// What is where, while a certificate is replaced.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct World {
    secret: Data,
    /// What the APIServices have as their `caBundle`.
    published: [String; 2],
    /// What the replicas have read last: the certificate that they show, and the bundle that they publish.
    replicas: [Data; 2],
}

/// Every world that comes after this one: a replica reads, and ends or writes; an APIService is changed by a replica.
fn following(world: &World, next: &Made, now: Timestamp) -> Vec<World> {
    let mut worlds = Vec::new();
    for replica in 0..2 {
        let mut read = world.clone();
        read.replicas[replica] = world.secret.clone();
        let held = held(&read.secret);
        let is_carried = world.published.iter().all(|bundle| held.is_carried_by(bundle));
        for carried_for in [None, is_carried.then_some(SETTLES)] {
            let change = match step(&read.secret, carried_for, now) {
                Step::Prepare => held.prepared(next),
                Step::TakeUp => held.taken_up(),
                Step::Forget => held.forgotten(now),
                Step::Begin => panic!("it can be read at every moment"),
                Step::Publish | Step::Rest(_) => continue,
            };
            worlds.push(World { secret: changed(&read.secret, change), ..read.clone() });
        }
        for service in 0..2 {
            let bundle = self::held(&world.replicas[replica]).bundle();
            let mut published = world.clone();
            if let Some(bundle) = ca_bundle(&bundle, &world.published[service], now) {
                published.published[service] = bundle;
            }
            worlds.push(published);
        }
        // It ends here, or has nothing to do.
        worlds.push(read);
    }
    worlds
}

#[test]
fn whoever_trusts_one_replica_trusts_all_of_them_wherever_the_replicas_end() {
    let data = first();
    let renew_at = held(&data).current.valid.renew_at();
    let next = make(&names(), renew_at).unwrap();
    let bundle = held(&data).bundle();
    let begin =
        World { secret: data.clone(), published: [bundle.clone(), bundle], replicas: [data.clone(), data] };
    let (mut seen, mut open) = (BTreeSet::new(), vec![begin]);
    while let Some(world) = open.pop() {
        for bundle in &world.published {
            for replica in &world.replicas {
                assert!(trusts(bundle, held(replica).current(), renew_at));
            }
        }
        if seen.insert(world.clone()) {
            open.extend(following(&world, &next, renew_at));
        }
    }
    assert!(seen.len() > 20, "{}", seen.len());
    // From each of them, it comes to its end if nothing happens any more.
    for mut world in seen {
        for _ in 0..3 {
            for replica in 0..2 {
                world.replicas[replica] = world.secret.clone();
                let held = held(&world.secret);
                let change = match step(&world.secret, Some(SETTLES), renew_at) {
                    Step::Prepare => held.prepared(&next),
                    Step::TakeUp if world.published.iter().all(|bundle| held.is_carried_by(bundle)) => {
                        held.taken_up()
                    }
                    _ => Change::new(),
                };
                world.secret = changed(&world.secret, change);
                world.replicas[replica] = world.secret.clone();
            }
            let bundle = held(&world.secret).bundle();
            world.published = [bundle.clone(), bundle];
        }
        assert!(world.replicas.iter().all(|replica| held(replica).current() == &next.pair));
    }
}

#[test]
fn a_certificate_that_nobody_accepts_is_replaced_without_waiting() {
    let data = first();
    let end = now() + VALID;
    let renamed: Vec<String> = vec!["other.pintle-system.svc".into()];
    for (names, now) in [(names(), end), (renamed, now())] {
        assert_eq!(decide(Some(&held(&data)), &names, Some(SETTLES), now), Step::Prepare);
        let prepared = changed(&data, held(&data).prepared(&make(&names, now).unwrap()));
        assert_eq!(decide(Some(&held(&prepared)), &names, None, now), Step::TakeUp);
    }
}

#[test]
fn a_next_certificate_that_is_of_no_use_is_made_again() {
    let data = first();
    let renew_at = held(&data).current.valid.renew_at();
    let prepared = changed(&data, held(&data).prepared(&make(&names(), renew_at).unwrap()));
    for (key, value) in [
        (NEXT_KEY, None),
        (NEXT_KEY, Some(data[KEY].clone())),
        (NEXT_CERTIFICATE, Some("nonsense".into())),
        (BUNDLE, Some(data[BUNDLE].clone())),
    ] {
        let broken = changed(&prepared, Change::from([(key, value)]));
        assert_eq!(step(&broken, Some(SETTLES), renew_at), Step::Prepare, "{key}");
        let mended = changed(&broken, held(&broken).prepared(&make(&names(), renew_at).unwrap()));
        assert_eq!(step(&mended, Some(SETTLES), renew_at), Step::TakeUp, "{key}");
    }
    // It was not taken up in all its life.
    assert_eq!(step(&prepared, None, renew_at + VALID), Step::Prepare);
}

#[test]
fn a_secret_without_a_certificate_that_can_be_used_is_begun_anew() {
    let (data, other) = (first(), first());
    for (key, value) in [
        (BUNDLE, None),
        (BUNDLE, Some(other[BUNDLE].clone())),
        (BUNDLE, Some("nonsense".into())),
        (CERTIFICATE, None),
        (CERTIFICATE, Some("nonsense".into())),
        (CERTIFICATE, Some(other[CERTIFICATE].clone())),
        (KEY, Some(other[KEY].clone())),
        (KEY, Some(String::new())),
    ] {
        let broken = changed(&data, Change::from([(key, value)]));
        assert!(Held::read(&broken).is_err(), "{key}");
        assert_eq!(step(&broken, Some(SETTLES), now()), Step::Begin, "{key}");
    }
}

#[test]
fn a_ca_bundle_gains_what_is_new_and_loses_what_is_not_valid_and_what_is_not_ours() {
    let of = |time| make(&names(), time).unwrap().authority;
    let (old, new) = (of(now()), of(after(60)));
    let both = format!("{old}{new}");
    assert_eq!(ca_bundle(&old, "", now()), Some(old.clone()));
    assert_eq!(ca_bundle(&old, &old, now()), None);
    assert_eq!(ca_bundle(&both, &old, after(60)), Some(both.clone()));
    assert_eq!(ca_bundle(&old, &both, after(60)), None, "the bundle was read before the other was made");
    assert_eq!(ca_bundle(&old, &new, after(60)), Some(format!("{new}{old}")));
    assert_eq!(ca_bundle(&both, &both, after(91)), Some(new.clone()));
    assert_eq!(ca_bundle(&both, &new, after(91)), None);
    let strange = TestIssuer::new("strange").pem;
    assert_eq!(ca_bundle(&old, &format!("{strange}{old}"), now()), Some(old.clone()));
    assert_eq!(ca_bundle(&old, "nonsense", now()), Some(old));
}

#[test]
fn a_ca_bundle_that_cannot_be_read_carries_nothing() {
    let held = held(&first());
    assert!(!held.is_carried_by("") && !held.is_carried_by("nonsense"));
    assert!(
        held.is_carried_by(&format!("{}{}", self::held(&first()).bundle(), held.bundle())),
        "more than it"
    );
}
