use std::{sync::Arc, time::Duration};

use tokio::time::advance;

use super::*;
use crate::{
    admission::Pools,
    reviews::tests::{Fake, with_clock},
};

fn llamas() -> Served {
    Served {
        api_version: "farm.example.com/v1alpha".into(),
        kind: "Llama".into(),
        plural: "llamas".into(),
        ..Served::default()
    }
}

fn jane() -> User {
    User {
        name: "jane".into(),
        uid: "42".into(),
        groups: vec!["shepherds".into()],
        extra: [("scopes".to_owned(), vec!["read".to_owned()])].into(),
    }
}

fn asked<'a>(served: &'a Served, verb: &'a str, namespace: Option<&'a str>, name: &'a str) -> Asked<'a> {
    Asked::Resource { served, verb, namespace, name }
}

/// [`authorize`], where nobody else asks.
async fn authorized(reviewer: &Reviewer<Arc<Fake>>, user: &User, asked: Asked<'_>) -> Result<(), Status> {
    let turn = Turn { pool: &Pools::default().reviews, party: &user.name };
    authorize(reviewer, turn, user, asked).await
}

fn setting() -> (Arc<Fake>, Reviewer<Arc<Fake>>) {
    let fake = Arc::new(Fake::default());
    let reviewer = Reviewer::new(Arc::clone(&fake));
    (fake, reviewer)
}

#[tokio::test(start_paused = true)]
async fn the_api_server_is_asked_about_the_caller_and_the_object() {
    with_clock(async {
        let (fake, reviewer) = setting();
        fake.answer(Some((true, "")));
        let served = llamas();
        authorized(&reviewer, &jane(), asked(&served, "get", Some("default"), "dolly")).await.unwrap();
        let spec = serde_json::to_value(fake.last_spec()).unwrap();
        assert_eq!(
            spec,
            serde_json::json!({
                "user": "jane", "uid": "42", "groups": ["shepherds"], "extra": {"scopes": ["read"]},
                "resourceAttributes": {"verb": "get", "group": "farm.example.com", "version": "v1alpha",
                    "resource": "llamas", "namespace": "default", "name": "dolly"},
            })
        );
        authorized(&reviewer, &jane(), Asked::Path { verb: "get", path: "/openapi/v3" }).await.unwrap();
        let spec = serde_json::to_value(fake.last_spec()).unwrap();
        assert_eq!(spec["nonResourceAttributes"], serde_json::json!({"verb": "get", "path": "/openapi/v3"}));
        assert_eq!(spec["resourceAttributes"], serde_json::Value::Null);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_may_not_is_told_in_the_api_servers_words() {
    with_clock(async {
        let (fake, reviewer) = setting();
        fake.answer(Some((false, "")));
        let served = llamas();
        for (asked, expected) in [
            (
                asked(&served, "list", Some("default"), ""),
                r#"llamas.farm.example.com is forbidden: User "jane" cannot list resource "llamas" in API group "farm.example.com" in the namespace "default""#,
            ),
            (
                asked(&served, "list", None, ""),
                r#"llamas.farm.example.com is forbidden: User "jane" cannot list resource "llamas" in API group "farm.example.com" at the cluster scope"#,
            ),
            (
                asked(&served, "delete", Some("default"), "dolly"),
                r#"llamas.farm.example.com "dolly" is forbidden: User "jane" cannot delete resource "llamas" in API group "farm.example.com" in the namespace "default""#,
            ),
            (
                Asked::Path { verb: "get", path: "/openapi/v3" },
                r#"forbidden: User "jane" cannot get path "/openapi/v3""#,
            ),
        ] {
            let status = authorized(&reviewer, &jane(), asked).await.unwrap_err();
            assert_eq!((status.code, status.message.as_str()), (403, expected));
        }
        fake.answer(Some((false, "no rule")));
        let status = authorized(&reviewer, &jane(), asked(&served, "watch", None, "")).await.unwrap_err();
        assert!(status.message.ends_with("at the cluster scope: no rule"), "{}", status.message);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_yes_and_a_no_hold_for_ten_seconds_and_for_one_question() {
    with_clock(async {
        let served = llamas();
        for first in [true, false] {
            let (fake, reviewer) = setting();
            let may = async |name: &str, user: &User| {
                authorized(&reviewer, user, asked(&served, "get", Some("default"), name)).await.is_ok()
            };
            fake.answer(Some((first, "")));
            assert_eq!(may("dolly", &jane()).await, first);
            fake.answer(Some((!first, "")));
            advance(Duration::from_millis(9_999)).await;
            assert_eq!((may("dolly", &jane()).await, fake.times()), (first, 1));
            assert_eq!(may("molly", &jane()).await, !first, "another object");
            let less = User { groups: Vec::new(), ..jane() };
            assert_eq!(may("dolly", &less).await, !first, "the same name with other groups");
            advance(Duration::from_millis(1)).await;
            assert_eq!((may("dolly", &jane()).await, fake.times()), (!first, 4));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_review_that_fails_is_no_yes_and_is_asked_again_at_once() {
    with_clock(async {
        let (fake, reviewer) = setting();
        let served = llamas();
        let asked = asked(&served, "list", None, "");
        let status = authorized(&reviewer, &jane(), asked).await.unwrap_err();
        assert_eq!((status.code, status.reason), (500, "InternalError"));
        assert!(!status.message.contains("no reply"), "{}", status.message);
        fake.answer(Some((true, "")));
        assert_eq!(authorized(&reviewer, &jane(), asked).await, Ok(()));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_about_masters() {
    with_clock(async {
        let (fake, reviewer) = setting();
        let served = llamas();
        let master = User { groups: vec![MASTERS.into()], ..jane() };
        authorized(&reviewer, &master, asked(&served, "delete", None, "")).await.unwrap();
        assert_eq!(fake.times(), 0);
    })
    .await;
}
