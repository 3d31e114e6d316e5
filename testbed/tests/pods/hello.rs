//! The program of the image `registry.test/hello:1`, which is a file without libraries. `/hello` waits: so a Pod holds its namespaces.
//! `/hello serve` says hello over HTTP, or what the variable `MESSAGE` has, and `/hello pictures` has a picture at each path that ends with
//! `.bmp`. Both listen on port 8080, and print what they were asked.

use std::{
    env,
    io::{self, Read as _, Write as _},
    net::TcpListener,
    thread,
};

/// The status, the type of the content, and that.
type Answer = (&'static str, &'static str, Vec<u8>);

fn main() -> io::Result<()> {
    match env::args().nth(1).as_deref() {
        None => loop {
            thread::park();
        },
        Some("serve") => {
            let message = env::var("MESSAGE").unwrap_or_else(|_| "hello".to_owned());
            serve(|_| ("200 OK", "text/plain", format!("{message}\n").into_bytes()))
        }
        Some("pictures") => serve(|path| {
            if path.ends_with(".bmp") {
                ("200 OK", "image/bmp", picture(64, 48))
            } else {
                ("404 Not Found", "text/plain", b"pictures end with .bmp\n".to_vec())
            }
        }),
        Some(other) => Err(io::Error::other(format!("serve or pictures, not {other}"))),
    }
}

fn serve(answer: impl Fn(&str) -> Answer) -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:8080")?;
    println!("listening");
    for mut client in listener.incoming().flatten() {
        let mut asked = [0; 4096];
        // A client that goes away is its own loss.
        let read = client.read(&mut asked).unwrap_or(0);
        let asked = String::from_utf8_lossy(&asked[..read]);
        println!("{}", asked.lines().next().unwrap_or("nothing"));
        let target = asked.split(' ').nth(1).unwrap_or_default();
        let (status, sort, content) = answer(target.split('?').next().unwrap_or_default());
        let head = format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: {sort}\r\nContent-Length: {}\r\n\r\n",
            content.len()
        );
        drop(client.write_all(&[head.into_bytes(), content].concat()));
    }
    Ok(())
}

/// A bitmap of 24 bits a pixel without compression. It becomes redder to the right and greener to the top. The width is a multiple of four, so
/// that no line needs to be filled up.
fn picture(width: u32, height: u32) -> Vec<u8> {
    let size = width * height * 3;
    let mut file = b"BM".to_vec();
    let mut numbers = |numbers: &[u32]| file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    // The size of the file, nothing, where the pixels are, and the size of the header that begins here.
    numbers(&[54 + size, 0, 54, 40]);
    // One plane of 24 bits, without compression; no resolution, no palette.
    numbers(&[width, height, 24 << 16 | 1, 0, size, 0, 0, 0, 0]);
    for (line, column) in (0..height).flat_map(|line| (0..width).map(move |column| (line, column))) {
        file.extend([0, (255 * line / height) as u8, (255 * column / width) as u8]);
    }
    file
}
