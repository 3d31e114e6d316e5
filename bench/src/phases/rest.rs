//! Nothing happens.

use anyhow::Result;

use crate::{
    settings::Phase,
    stage::{Stage, count},
};

pub(crate) async fn run(stage: &mut Stage<'_>) -> Result<()> {
    let rest = stage.flags.rest();
    println!("  rest: {}, {} s", stage.who.name(), rest.as_secs());
    let begun = stage.begin()?;
    tokio::time::sleep(rest).await;
    let ended = stage.end_now(Phase::Rest, "", begun)?;
    let beyond = ended.calls.iter().filter(|call| !call.is_watch() && call.resource != "leases").count();
    stage.put(Phase::Rest, "beyond_leases_and_watches", count(beyond));
    stage.put(Phase::Rest, "seconds", rest.as_secs_f64());
    println!("    {beyond} calls");
    Ok(())
}
