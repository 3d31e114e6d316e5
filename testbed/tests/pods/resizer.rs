//! The test's resizer, which is not the image proxy. It stands in for the image proxy of a Darkroom (gojek/darkroom), whose image cannot be
//! had without a registry, and reads the same variables of the environment. It ends at once if one is missing or is not what it must be, or
//! if there is another one of a source. It knows sources of the kind WebFolder, by HTTP without TLS, bitmaps (BMP) of 24 bits without
//! compression, and of the parameters the width: `GET /PATH?w=32`.

use std::{
    env,
    io::{self, Read, Write as _},
    net::{TcpListener, TcpStream, ToSocketAddrs as _},
    process::ExitCode,
    str::FromStr,
    thread,
    time::Duration,
};

/// The most that is read and sent.
const BYTES_MAX: usize = 16 << 20;

/// The longest request.
const REQUEST_MAX: u64 = 16 << 10;

/// The status and why.
type Refusal = (u16, String);

/// The texts of a source of the kind WebFolder.
const SOURCE_TEXTS: [&str; 3] = ["SOURCE_KIND", "SOURCE_BASEURL", "SOURCE_HYSTRIX_COMMANDNAME"];

/// Its numbers.
const SOURCE_NUMBERS: [&str; 5] = [
    "SOURCE_HYSTRIX_TIMEOUT",
    "SOURCE_HYSTRIX_MAXCONCURRENTREQUESTS",
    "SOURCE_HYSTRIX_REQUESTVOLUMETHRESHOLD",
    "SOURCE_HYSTRIX_SLEEPWINDOW",
    "SOURCE_HYSTRIX_ERRORPERCENTTHRESHOLD",
];

/// What of the environment is used.
struct Settings {
    port: u16,
    /// For how many seconds a picture may be kept.
    cache_time: u64,
    source: String,
    /// For how long the source is waited for.
    patience: Duration,
}

fn main() -> ExitCode {
    println!("this is the test's resizer, not the image proxy");
    match Settings::read().and_then(|settings| serve(&settings)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

impl Settings {
    /// Reads all that the image proxy reads. That does not include the variables `APP_*`.
    fn read() -> Result<Self, String> {
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            let is_known = SOURCE_TEXTS.iter().chain(&SOURCE_NUMBERS).any(|known| *known == name);
            if name.starts_with("SOURCE_") && !is_known {
                return Err(format!("a source of the kind WebFolder has no {name}"));
            }
        }
        for name in SOURCE_TEXTS.into_iter().chain(["LOG_LEVEL"]) {
            text(name)?;
        }
        for name in SOURCE_NUMBERS {
            value::<u32>(name)?;
        }
        value::<bool>("DEBUG")?;
        let kind = text("SOURCE_KIND")?;
        if !kind.eq_ignore_ascii_case("WebFolder") {
            return Err(format!("SOURCE_KIND is {kind}, and the test's resizer knows only WebFolder"));
        }
        Ok(Self {
            port: value("PORT")?,
            cache_time: value("CACHE_TIME")?,
            source: text("SOURCE_BASEURL")?,
            patience: Duration::from_millis(value::<u64>("SOURCE_HYSTRIX_TIMEOUT")?.max(1)),
        })
    }
}

fn text(name: &str) -> Result<String, String> {
    env::var(name).ok().filter(|value| !value.is_empty()).ok_or_else(|| format!("{name} is not set"))
}

fn value<V: FromStr>(name: &str) -> Result<V, String> {
    let text = text(name)?;
    text.parse().map_err(|_| format!("{name} has no such value: {text}"))
}

fn serve(settings: &Settings) -> Result<(), String> {
    let listener = TcpListener::bind(("0.0.0.0", settings.port))
        .map_err(|error| format!("PORT {}: {error}", settings.port))?;
    println!("listening on port {}, for the pictures below {}", settings.port, settings.source);
    thread::scope(|scope| {
        for client in listener.incoming().flatten() {
            scope.spawn(move || {
                // A client that goes away is its own loss.
                drop(talk(client, settings));
            });
        }
    });
    Ok(())
}

fn talk(mut client: TcpStream, settings: &Settings) -> io::Result<()> {
    client.set_read_timeout(Some(Duration::from_secs(10)))?;
    client.set_write_timeout(Some(Duration::from_secs(10)))?;
    let line = request(&mut client)?;
    let (status, headers, content) = match answer(&line, settings) {
        Ok((headers, content)) => (200, headers, content),
        Err((status, why)) => (status, String::new(), format!("{why}\n").into_bytes()),
    };
    if !line.starts_with("GET /ping ") {
        println!("{status} {line}");
    }
    let length = content.len();
    // HTTP wants a reason behind the number, which no client reads.
    let head =
        format!("HTTP/1.1 {status} -\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n");
    client.write_all(head.as_bytes())?;
    client.write_all(&content)
}

/// The first line of a request, once all of it is there.
fn request(client: &mut TcpStream) -> io::Result<String> {
    let (mut asked, mut part) = (Vec::new(), [0; 1024]);
    let mut reader = client.take(REQUEST_MAX);
    while !asked.windows(4).any(|four| four == b"\r\n\r\n") {
        match reader.read(&mut part)? {
            0 => break,
            read => asked.extend_from_slice(&part[..read]),
        }
    }
    Ok(String::from_utf8_lossy(&asked).lines().next().unwrap_or_default().to_owned())
}

/// The headers and the content.
fn answer(line: &str, settings: &Settings) -> Result<(String, Vec<u8>), Refusal> {
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method != "GET" {
        return Err((405, "only GET".to_owned()));
    }
    let (path, parameters) = target.split_once('?').unwrap_or((target, ""));
    if path == "/ping" {
        return Ok(("Content-Type: text/plain\r\n".to_owned(), b"pong".to_vec()));
    }
    if !path.starts_with('/') {
        return Err((400, "the path must begin with /".to_owned()));
    }
    let width = width(parameters)?;
    let file = fetch(&format!("{}{path}", settings.source), settings.patience)?;
    let content = match width {
        Some(width) => scaled(&file, width).map_err(|why| (422, why))?,
        None => file,
    };
    let cache = settings.cache_time;
    let headers =
        format!("Content-Type: image/bmp\r\nCache-Control: public,max-age={cache}\r\nVary: Accept\r\n");
    Ok((headers, content))
}

/// The width that is asked for, if one is.
fn width(parameters: &str) -> Result<Option<usize>, Refusal> {
    let mut width = None;
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some(("w", value)) => match value.parse() {
                Ok(pixels @ 1..=4096) => width = Some(pixels),
                _ => return Err((400, format!("w must be from 1 to 4096, not {value}"))),
            },
            _ => return Err((400, format!("the test's resizer knows only w, not {parameter}"))),
        }
    }
    Ok(width)
}

/// What the source has at an address.
fn fetch(address: &str, patience: Duration) -> Result<Vec<u8>, Refusal> {
    let bad = |why: &str| (502, format!("{address}: {why}"));
    let rest = address.strip_prefix("http://").ok_or_else(|| bad("the test's resizer speaks only http"))?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let with_port = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    let response = ask(&with_port, host, path, patience).map_err(|error| bad(&error.to_string()))?;
    if response.len() > BYTES_MAX {
        return Err(bad("it is longer than 16 MiB"));
    }
    let end = response.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(|| bad("no HTTP"))?;
    let head = String::from_utf8_lossy(&response[..end]);
    let content = response[end + 4..].to_vec();
    match head.split(' ').nth(1).and_then(|status| status.parse().ok()) {
        Some(200) => {}
        Some(status @ 400..=499) => return Err((status, format!("{address}: the source says {status}"))),
        _ => return Err(bad("the source does not have it")),
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("Content-Length").then(|| value.trim().parse::<usize>().ok())?
    });
    match length {
        Some(length) if length != content.len() => Err(bad("the source has ended too early")),
        _ => Ok(content),
    }
}

/// The whole answer of a server.
fn ask(server: &str, host: &str, path: &str, patience: Duration) -> io::Result<Vec<u8>> {
    let address = server.to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
    let mut source = TcpStream::connect_timeout(&address, patience)?;
    source.set_read_timeout(Some(patience))?;
    source.set_write_timeout(Some(patience))?;
    // Of this version, an answer is not in chunks.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    source.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    source.take(BYTES_MAX as u64 + 1).read_to_end(&mut response)?;
    Ok(response)
}

/// A bitmap with this width, and a height in proportion: of each pixel the nearest one of the file.
fn scaled(file: &[u8], width: usize) -> Result<Vec<u8>, String> {
    let short = || "the file is too short".to_owned();
    let number = |at: usize| -> Result<i32, String> {
        let bytes = file.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).ok_or_else(short)?;
        Ok(i32::from_le_bytes(bytes))
    };
    if !file.starts_with(b"BM") {
        return Err("it is no bitmap (BMP)".to_owned());
    }
    // One plane of 24 bits, and no compression.
    if number(26)? != 24 << 16 | 1 || number(30)? != 0 {
        return Err("it is no bitmap of 24 bits without compression".to_owned());
    }
    let positive = |number: i32| usize::try_from(number).ok().filter(|number| *number > 0);
    let (start, old_width, lines) = (positive(number(10)?), positive(number(18)?), number(22)?);
    let old_height = positive(lines.saturating_abs());
    let (Some(start), Some(old_width), Some(old_height)) = (start, old_width, old_height) else {
        return Err("it has no width or no height".to_owned());
    };
    let height = (old_height.saturating_mul(width) / old_width).max(1);
    let size = stride(width).saturating_mul(height);
    if size > BYTES_MAX {
        return Err("it would be larger than 16 MiB".to_owned());
    }

    let mut new = b"BM".to_vec();
    // From the top if the height is negative, as in the file.
    let signed_height = if lines < 0 { -(height as i32) } else { height as i32 };
    for number in
        [54 + size as i32, 0, 54, 40, width as i32, signed_height, 24 << 16 | 1, 0, size as i32, 0, 0, 0, 0]
    {
        new.extend(number.to_le_bytes());
    }
    for line in 0..height {
        let old_line = start.saturating_add((line * old_height / height).saturating_mul(stride(old_width)));
        for column in 0..width {
            let pixel = old_line.saturating_add(column * old_width / width * 3);
            new.extend(file.get(pixel..pixel.saturating_add(3)).ok_or_else(short)?);
        }
        new.resize(54 + (line + 1) * stride(width), 0);
    }
    Ok(new)
}

/// How many bytes a line has, which is filled up to a multiple of four.
fn stride(width: usize) -> usize {
    width.saturating_mul(3).next_multiple_of(4)
}
