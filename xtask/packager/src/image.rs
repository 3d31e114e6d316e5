//! The image of the host, in one file that holds it twice: by docker's `manifest.json`, and as an OCI layout. Both name the same blobs.
//!
//! The image has the static binary, and what a program looks for that nobody put into it: a user, authorities, how names are resolved, and
//! a folder for temporary files. It has no shell, and no package that could have a vulnerability.

use std::{
    env::{self, consts::ARCH},
    fs,
    net::IpAddr,
    path::Path,
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use pem::{EncodeConfig, LineEnding, Pem};
use pintle_testbed::output;
use serde_json::{Value, json};
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;
use xtask::IMAGE;

use crate::archive::{Entry, gzip, sha256, tar};

/// The user that `deploy/` runs the image as, too.
pub(crate) const USER: u32 = 65532;

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An image, in an archive.
pub(crate) struct Image {
    pub(crate) archive: Vec<u8>,
    /// The name that a registry knows it by.
    pub(crate) digest: String,
}

/// Bytes that others refer to by their digest.
struct Blob {
    digest: String,
    bytes: Vec<u8>,
}

/// Writes the image with this binary, by this name.
pub(crate) fn write(binary: &Path, file: &Path, name: &str) -> Result<()> {
    Image::of(&[name], &content(fs::read(binary)?), &run())?.write(file)
}

/// Compiles a program that is one file, and needs no library.
pub(crate) fn compile(source: &Path, program: &Path) -> Result<()> {
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut compiler = Command::new(compiler);
    compiler.args(["--edition=2024", "-Ctarget-feature=+crt-static", "-Cstrip=symbols", "-o"]);
    output(compiler.arg(program).arg(source), None).map(drop)
}

/// Pushes an image by this name. Only on this machine may a registry be without TLS.
pub(crate) fn push(file: &Path, name: &str) -> Result<()> {
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["copy", "--preserve-digests"]).arg(format!("--dest-tls-verify={}", !is_on_loopback(name)));
    skopeo.arg(format!("oci-archive:{}", file.display())).arg(format!("docker://{name}"));
    let status = skopeo.status().context("skopeo cannot be run")?;
    ensure!(status.success(), "skopeo could not push {name} ({status})");
    Ok(())
}

/// Whether the registry of this name is on this machine.
fn is_on_loopback(name: &str) -> bool {
    let registry = name.split('/').next().unwrap_or_default();
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
    let is_loopback = |address: IpAddr| address.is_loopback();
    host == "localhost" || host.trim_matches(['[', ']']).parse().is_ok_and(is_loopback)
}

impl Image {
    /// The image with this binary: the same bytes for the same binary, commit and `SOURCE_DATE_EPOCH`.
    pub(crate) fn new(binary: Vec<u8>) -> Result<Self> {
        Self::of(&[IMAGE], &content(binary), &run())
    }

    /// The image of these names with these files, whose containers are run like this.
    pub(crate) fn of(names: &[&str], files: &[Entry], run: &Value) -> Result<Self> {
        let content = tar(files)?;
        let config = Blob::of(&config(&digest(&content), run)?);
        let layer = Blob::new(gzip(&content)?);
        let manifest = Blob::of(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.descriptor(CONFIG),
            "layers": [layer.descriptor(LAYER)],
        }));
        let descriptors = names.iter().map(|name| {
            let mut descriptor = manifest.descriptor(MANIFEST);
            // containerd and podman name the image by the first, and the second is the specification's.
            descriptor["annotations"] = json!({
                "io.containerd.image.name": full_name(name),
                "org.opencontainers.image.ref.name": name.rsplit(':').next(),
            });
            descriptor
        });
        let descriptors: Vec<Value> = descriptors.collect();
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": descriptors});
        let docker = json!([{"Config": config.path(), "RepoTags": names, "Layers": [layer.path()]}]);

        let digest = manifest.digest.clone();
        let mut blobs = [config, layer, manifest];
        blobs.sort_by_key(Blob::path);
        let mut entries = vec![Entry::folder("blobs/"), Entry::folder("blobs/sha256/")];
        entries.extend(blobs.map(|blob| Entry::file(blob.path(), blob.bytes)));
        entries.push(Entry::file("index.json", index.to_string()));
        entries.push(Entry::file("manifest.json", docker.to_string()));
        entries.push(Entry::file("oci-layout", json!({"imageLayoutVersion": "1.0.0"}).to_string()));
        Ok(Self { archive: tar(&entries)?, digest })
    }

    /// Writes the archive, and prints the digest.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, &self.archive).with_context(|| format!("{} cannot be written", file.display()))?;
        println!("{}", self.digest);
        Ok(())
    }
}

/// A name with its registry. Without one it is of Docker's, where an owner is in front, too.
fn full_name(name: &str) -> String {
    match name.split_once('/') {
        Some((registry, _)) if registry.contains(['.', ':']) || registry == "localhost" => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
        None => format!("docker.io/library/{name}"),
    }
}

/// The files of the image.
fn content(binary: Vec<u8>) -> [Entry; 8] {
    [
        Entry::folder("etc/"),
        Entry::file("etc/nsswitch.conf", "hosts: files dns\n"),
        Entry::file("etc/passwd", format!("pintle:x:{USER}:{USER}:pintle:/:/sbin/nologin\n")),
        Entry::folder("etc/ssl/"),
        Entry::folder("etc/ssl/certs/"),
        Entry::file("etc/ssl/certs/ca-certificates.crt", authorities()),
        Entry::program("pintle", binary),
        Entry::shared_folder("tmp/"),
    ]
}

/// The certificates of the authorities that Mozilla trusts, of a crate: those of this machine would differ from machine to machine.
fn authorities() -> String {
    let lines = EncodeConfig::new().set_line_ending(LineEnding::LF);
    let pem = |der: &[u8]| pem::encode_config(&Pem::new("CERTIFICATE", der), lines);
    TLS_SERVER_ROOT_CERTS.iter().map(|certificate| pem(certificate)).collect()
}

/// The document about an image whose containers are run like this. The digest is that of the layer before it was compressed.
fn config(layer: &str, run: &Value) -> Result<Value> {
    let architecture = match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("no image is made for {other}"),
    };
    let seconds = env::var("SOURCE_DATE_EPOCH").unwrap_or_else(|_| "0".to_owned());
    let seconds = seconds.parse::<i64>().context("SOURCE_DATE_EPOCH is no number of seconds")?;
    let created = Timestamp::from_second(seconds)?.to_string();
    Ok(json!({
        "architecture": architecture,
        "os": "linux",
        "created": created,
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [layer]},
        "history": [{"created": created, "created_by": "cargo xtask image"}],
    }))
}

/// How containers of the host's image are run.
fn run() -> Value {
    let mut labels = json!({
        "org.opencontainers.image.title": "pintle",
        "org.opencontainers.image.description": "A Kubernetes operator whose logic is a WebAssembly module",
        "org.opencontainers.image.version": env!("CARGO_PKG_VERSION"),
        "org.opencontainers.image.licenses": "Apache-2.0",
    });
    if let Some(revision) = env::var("PINTLE_REVISION").ok().filter(|revision| !revision.is_empty()) {
        labels["org.opencontainers.image.revision"] = revision.into();
    }
    json!({
        "User": format!("{USER}:{USER}"),
        "Entrypoint": ["/pintle"],
        "Env": ["PATH=/"],
        "WorkingDir": "/",
        "Labels": labels,
    })
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256(bytes))
}

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        Self { digest: digest(&bytes), bytes }
    }

    fn of(document: &Value) -> Self {
        Self::new(document.to_string().into_bytes())
    }

    /// Where an OCI layout has it.
    fn path(&self) -> String {
        format!("blobs/{}", self.digest.replace(':', "/"))
    }

    /// How another document refers to it.
    fn descriptor(&self, media_type: &str) -> Value {
        json!({"mediaType": media_type, "digest": self.digest, "size": self.bytes.len()})
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, io::Read as _};

    use flate2::read::GzDecoder;
    use tar::Archive;

    use super::*;

    fn image() -> Image {
        Image::new(b"a binary".to_vec()).unwrap()
    }

    /// The files of a tar by their paths.
    fn files(tar: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = Archive::new(tar);
        let files = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().to_str().unwrap().to_owned(), content)
        });
        files.collect()
    }

    fn document(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    /// The blob that a descriptor names, and its path.
    fn blob<'a>(files: &'a BTreeMap<String, Vec<u8>>, descriptor: &Value) -> (&'a str, &'a [u8]) {
        let named = descriptor["digest"].as_str().unwrap();
        let (path, bytes) = files.get_key_value(&format!("blobs/{}", named.replace(':', "/"))).unwrap();
        assert_eq!(digest(bytes), named);
        assert_eq!(descriptor["size"], bytes.len());
        (path, bytes)
    }

    /// The layer, uncompressed.
    fn layer(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
        let docker = document(&files["manifest.json"]);
        let mut content = Vec::new();
        let packed = &files[docker[0]["Layers"][0].as_str().unwrap()];
        GzDecoder::new(packed.as_slice()).read_to_end(&mut content).unwrap();
        content
    }

    #[test]
    fn an_image_made_twice_is_the_same_bytes() {
        assert_eq!(image().archive, image().archive);
    }

    #[test]
    fn docker_and_the_layout_name_the_same_blobs_by_their_digests_and_sizes() {
        let image = image();
        let files = files(&image.archive);
        let index = document(&files["index.json"]);
        assert_eq!(index["manifests"][0]["digest"], image.digest);
        let (_, manifest) = blob(&files, &index["manifests"][0]);
        let manifest = document(manifest);
        let (config_path, config) = blob(&files, &manifest["config"]);
        let (layer_path, _) = blob(&files, &manifest["layers"][0]);
        assert_eq!(document(config)["rootfs"]["diff_ids"], json!([digest(&layer(&files))]));
        let docker = json!([{"Config": config_path, "RepoTags": [IMAGE], "Layers": [layer_path]}]);
        assert_eq!(document(&files["manifest.json"]), docker);
    }

    #[test]
    fn an_image_of_two_names_is_found_by_each() {
        let names = ["web:1", "registry.test/web:2"];
        let image = Image::of(&names, &[Entry::file("a", "a")], &json!({})).unwrap();
        let files = files(&image.archive);
        assert_eq!(document(&files["manifest.json"])[0]["RepoTags"], json!(names));
        let index = document(&files["index.json"]);
        let found = index["manifests"].as_array().unwrap().iter().map(|manifest| {
            assert_eq!(manifest["digest"], image.digest);
            manifest["annotations"]["io.containerd.image.name"].as_str().unwrap()
        });
        assert_eq!(found.collect::<Vec<_>>(), ["docker.io/library/web:1", "registry.test/web:2"]);
    }

    #[test]
    fn a_name_without_a_registry_is_of_dockers() {
        for (name, expected) in [
            ("nginx:1", "docker.io/library/nginx:1"),
            ("owner/nginx:1", "docker.io/owner/nginx:1"),
            ("registry.test/nginx:1", "registry.test/nginx:1"),
            ("localhost/nginx:1", "localhost/nginx:1"),
            ("machine:5000/nginx", "machine:5000/nginx"),
        ] {
            assert_eq!(full_name(name), expected);
        }
    }

    #[test]
    fn the_layer_has_the_binary_and_what_it_needs_for_a_user_without_rights() {
        let layer = layer(&files(&image().archive));
        let mut archive = Archive::new(layer.as_slice());
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()), (0, 0, 0));
            (entry.path().unwrap().to_str().unwrap().to_owned(), header.mode().unwrap())
        });
        let entries: BTreeMap<String, u32> = entries.collect();
        assert_eq!(entries["pintle"], 0o755);
        assert_eq!(entries["tmp/"], 0o1777);
        let files = files(&layer);
        assert_eq!(files["pintle"], b"a binary");
        assert!(files["etc/passwd"].starts_with(b"pintle:x:65532:65532:"));
        let authorities = String::from_utf8(files["etc/ssl/certs/ca-certificates.crt"].clone()).unwrap();
        assert!(authorities.matches("-----BEGIN CERTIFICATE-----\n").count() > 100);
    }

    #[test]
    fn only_a_registry_on_this_machine_may_be_without_tls() {
        for name in ["localhost:5000/pintle:0.1.0", "127.0.0.1:41234/pintle", "[::1]:5000/a/pintle:1"] {
            assert!(is_on_loopback(name), "{name}");
        }
        for name in
            ["registry.example.com/pintle:0.1.0", "10.0.0.1:5000/pintle", "localhost.example.com:80/pintle"]
        {
            assert!(!is_on_loopback(name), "{name}");
        }
    }
}
