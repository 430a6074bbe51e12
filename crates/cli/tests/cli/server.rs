//! A web server for tests: one folder's files, whole or by ranges, over plain sockets.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A server on a port of its own, for as long as it lives. Whatever folders an address names, its last component is
/// the file.
pub(crate) struct Server {
    address: SocketAddr,
    /// The request lines, with the range behind them.
    asked: Arc<Mutex<Vec<String>>>,
    gone: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn of(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (asked, gone) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicBool>::default());
        let (folder, log, over) = (PathBuf::from(folder), Arc::clone(&asked), Arc::clone(&gone));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::SeqCst) {
                    break;
                }
                let (folder, log) = (folder.clone(), Arc::clone(&log));
                // A client that goes away is no failure of the test.
                thread::spawn(move || serve(stream, &folder, &log).ok());
            }
        });
        Self { address, asked, gone }
    }

    /// Where it is, without the scheme: `127.0.0.1:40000`.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// What was asked for since the last time.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().expect("no panic"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers the requests of one connection.
fn serve(mut stream: TcpStream, folder: &Path, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while let Some(request) = lines.next().transpose()? {
        let mut range = None;
        while let Some(line) = lines.next().transpose()?.filter(|line| !line.is_empty()) {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
                range = value
                    .split_once('-')
                    .and_then(|(first, last)| Some((first.parse::<usize>().ok()?, last.parse::<usize>().ok()?)));
            }
        }
        log.lock().expect("no panic").push(format!("{request} {range:?}"));
        let mut words = request.split_whitespace();
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = target.split('?').next().unwrap_or_default();
        let file = std::fs::read(folder.join(decoded(path.rsplit('/').next().unwrap_or_default())));
        let (status, more, body) = match (method, file, range) {
            // As signed links refuse it.
            ("HEAD", _, _) => ("405 No", String::new(), Vec::new()),
            (_, Err(_), _) => ("404 Not Found", String::new(), Vec::new()),
            (_, Ok(file), None) => ("200 OK", String::new(), file),
            (_, Ok(file), Some((first, last))) if first < file.len() => {
                let end = file.len().min(last + 1);
                let said = format!("Content-Range: bytes {first}-{}/{}\r\n", end - 1, file.len());
                ("206 Partial Content", said, file[first..end].to_vec())
            }
            (_, Ok(file), Some(_)) => ("416 Outside", format!("Content-Range: bytes */{}\r\n", file.len()), Vec::new()),
        };
        let head = format!("HTTP/1.1 {status}\r\nETag: \"1\"\r\n{more}Content-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes())?;
        stream.write_all(&body)?;
    }
    Ok(())
}

/// A component of an address without its escapes.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).expect("an escape"));
        bytes.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).expect("UTF-8")
}
