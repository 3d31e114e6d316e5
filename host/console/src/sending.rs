//! Long answers, which take memory of the budget until they are sent: whoever does not read them would hold what nobody has counted.

use axum::{
    body::{Body, HttpBody as _},
    response::Response,
};
use bytes::Bytes;
use http::header;
use http_body_util::BodyExt as _;
use pintle_runtime::paced;

use crate::{app::App, problem::Problem};

/// How long an answer is that takes no memory of the budget, in bytes: as much as is on its way in any case.
const SHORT_BYTES: u64 = 1 << 20;

/// An answer, which has to be read in time if it is long.
///
/// # Errors
/// 429 when there is no memory for it.
pub(crate) async fn sent(app: &App, response: Response) -> Result<Response, Problem> {
    let Some(bytes) = response.body().size_hint().exact().filter(|bytes| *bytes > SHORT_BYTES) else {
        return Ok(response);
    };
    let memory = app.memory.of_sending(bytes).await?;
    let (mut head, body) = response.into_parts();
    // It is there already.
    let text: Bytes = match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(_) => return Err(Problem::bad_gateway("the answer cannot be read")),
    };
    head.headers.insert(header::CONTENT_LENGTH, bytes.into());
    let (parts, arriving) = paced::channel();
    tokio::spawn(async move {
        let _ = parts.send_whole(text).await;
        drop(memory);
    });
    Ok(Response::from_parts(head, Body::from_stream(arriving)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fake;

    const MIB: usize = 1 << 20;

    fn reserved(app: &App) -> u64 {
        app.memory.standing().reserved.iter().map(|(_, bytes)| bytes).sum()
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_answer_takes_memory_until_it_is_read_or_for_a_minute() {
        let (client, _) = fake::upstream(|_| (200, serde_json::json!({})));
        let app = fake::app(fake::cluster(), client);
        let answer = |bytes: usize| Response::new(Body::from(vec![b'a'; bytes]));
        let short = sent(&app, answer(MIB)).await.unwrap();
        assert_eq!(reserved(&app), 0, "it is short");
        drop(short);
        let long = sent(&app, answer(8 * MIB)).await.unwrap();
        assert_eq!(reserved(&app), 8 * MIB as u64);
        assert_eq!(long.into_body().collect().await.unwrap().to_bytes().len(), 8 * MIB);
        tokio::task::yield_now().await;
        assert_eq!(reserved(&app), 0);
        let unread = sent(&app, answer(8 * MIB)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert_eq!(reserved(&app), 0, "nobody reads it");
        assert!(unread.into_body().collect().await.is_err(), "and nobody takes its beginning for all of it");
    }
}
