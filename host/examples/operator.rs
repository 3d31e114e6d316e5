use clap::Parser;
#[derive(Parser)]
struct A {
    #[command(flatten)]
    f: pintle::operator::Flags,
}
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    pintle::operator::run(A::parse().f).await
}
