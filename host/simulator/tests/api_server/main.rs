//! The API server in memory as its clients see it: rights, a client of kube, and the controllers that run beside it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what helps a test may fail it")]

mod access;
mod client;
mod controllers;

use http_body_util::BodyExt;
use kube::{Client, client::Body};
use pintle_simulator::{ApiServer, Options};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn server() -> (ApiServer, Client) {
    let server = ApiServer::new(Options::default());
    let client = Client::new(server.service("test"), "default");
    (server, client)
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"key": value}})
}

async fn send(client: &Client, request: http::request::Builder, body: Value) -> (u16, Value) {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let response = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}
