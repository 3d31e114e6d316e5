fn main() {
    for crd in pintle::api::crds() {
        println!("---\n{}", serde_json::to_string(&crd).unwrap());
    }
}
