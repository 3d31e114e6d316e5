//! The images of the tests' Pods, beside that of the host: a program that says hello, Debian's nginx, and a resizer in the place of the
//! image proxy.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result};
use pintle_testbed::output;
use serde_json::json;
use xtask::root;

use crate::{
    archive::Entry,
    image::{Image, USER, compile},
};

const HELLO: [&str; 1] = ["registry.test/hello:1"];

/// What the samples, the demo and a guest of `pintle new` ask for. It is the nginx of this machine, whichever version that is.
const NGINX: [&str; 3] = ["nginx:1.23.0", "nginx:1.23.1", "nginx:1.29-alpine"];

/// What a Darkroom asks for: that of the sample, and one that says no version.
const RESIZER: [&str; 2] = ["gojektech/darkroom:v0.1.0", "gojektech/darkroom:v0.4.0"];

/// Where Debian has nginx.
const SERVER: &str = "/usr/sbin/nginx";

/// Writes them into this folder.
pub(crate) fn write(folder: &Path) -> Result<()> {
    program("hello", &HELLO)?.write(&folder.join("hello.tar"))?;
    program("resizer", &RESIZER)?.write(&folder.join("resizer.tar"))?;
    nginx()?.write(&folder.join("nginx.tar"))
}

/// The image of a program of the tests, which is one file.
fn program(name: &str, names: &[&str]) -> Result<Image> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join(name);
    compile(&root().join(format!("testbed/tests/pods/{name}.rs")), &program)?;
    let files = [Entry::program(name, fs::read(program)?)];
    // It does not listen to any signal, so no other would end it.
    let run = json!({
        "User": format!("{USER}:{USER}"),
        "Entrypoint": [format!("/{name}")],
        "StopSignal": "SIGKILL",
    });
    Image::of(names, &files, &run)
}

/// nginx and what it needs, from this machine. It starts as root and has port 80, as the image that everybody uses does. containerd makes the
/// folders of the files.
fn nginx() -> Result<Image> {
    // `libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f2c01234000)`, and the loader without what is before the path.
    let libraries = output(Command::new("ldd").arg(SERVER), None)?;
    let libraries = libraries.split_whitespace().filter(|word| word.starts_with('/'));
    let mut files =
        libraries.chain([SERVER]).map(|path| copy(path, Entry::program)).collect::<Result<Vec<_>>>()?;
    files.push(copy("/etc/nginx/mime.types", Entry::file)?);
    let config = fs::read(root().join("testbed/tests/pods/nginx.conf"))?;
    files.extend([
        Entry::file("etc/group", "root:x:0:\nnobody:x:65534:\n"),
        Entry::file("etc/nginx/nginx.conf", config),
        Entry::file(
            "etc/passwd",
            "root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n",
        ),
        Entry::file("usr/share/nginx/html/index.html", "<!doctype html>\n<title>Welcome to nginx!</title>\n"),
        Entry::folder("run/"),
        Entry::shared_folder("tmp/"),
        Entry::folder("var/lib/nginx/"),
    ]);
    let run = json!({"Entrypoint": [SERVER], "ExposedPorts": {"80/tcp": {}}, "StopSignal": "SIGQUIT"});
    Image::of(&NGINX, &files, &run)
}

/// A file of this machine, at its path.
fn copy(path: &str, entry: impl Fn(String, Vec<u8>) -> Entry) -> Result<Entry> {
    let content = fs::read(path).with_context(|| format!("{path} cannot be read"))?;
    Ok(entry(path.trim_start_matches('/').to_owned(), content))
}
