//! An HTTP server for tests, over plain sockets so that it can misbehave.
#![allow(dead_code)] // each test uses its part
#![allow(unreachable_pub)] // of what is shared among them
#![allow(clippy::unwrap_used)] // a test may panic

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use gguf2st_source::{Environment, OpenOptions, Retry};

/// A request as it came in.
#[derive(Clone, Debug)]
pub struct Request {
    /// How many came before it.
    pub nth: usize,
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names in small letters.
    pub headers: Vec<(String, String)>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The bytes asked for.
    pub fn range(&self) -> Range<usize> {
        let (first, last) = self.header("range").unwrap().strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        first.parse().unwrap()..last.parse::<usize>().unwrap() + 1
    }
}

/// What to answer.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// How much of the body is sent before the connection is closed.
    pub cut: Option<usize>,
    /// Say nothing about the length; the end of the connection ends the body.
    pub no_length: bool,
    /// Send the body again and again for as long as somebody listens.
    pub endless: bool,
    /// Say nothing more until the server is gone.
    pub silent: bool,
}

impl Reply {
    pub fn new(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.retain(|(it, _)| !it.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    pub fn body(self, body: &[u8]) -> Self {
        Self { body: body.to_vec(), ..self }
    }

    pub fn cut(self, sent: usize) -> Self {
        Self { cut: Some(sent), ..self }
    }

    pub fn redirect(to: impl ToString) -> Self {
        Self::new(302).with("Location", to)
    }

    /// The bytes that were asked for, as a good server gives them.
    pub fn ranged(data: &[u8], request: &Request) -> Self {
        let asked = request.range();
        if asked.start >= data.len() {
            return Self::new(416).with("Content-Range", format!("bytes */{}", data.len()));
        }
        let end = asked.end.min(data.len());
        let said = format!("bytes {}-{}/{}", asked.start, end - 1, data.len());
        Self::new(206).with("Content-Range", said).body(&data[asked.start..end])
    }
}

/// A server on a port of its own, for as long as it lives.
pub struct Server {
    address: SocketAddr,
    log: Arc<Mutex<Vec<Request>>>,
    connections: Arc<AtomicUsize>,
    gone: Arc<(AtomicBool, Mutex<()>, Condvar)>,
}

impl Server {
    pub fn new(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let gone = Arc::new((AtomicBool::new(false), Mutex::new(()), Condvar::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let (answer, seen, over) = (Arc::new(answer), Arc::clone(&log), Arc::clone(&gone));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if over.0.load(Ordering::SeqCst) {
                    break;
                }
                count.fetch_add(1, Ordering::SeqCst);
                let (answer, seen, over) = (Arc::clone(&answer), Arc::clone(&seen), Arc::clone(&over));
                thread::spawn(move || {
                    if let Ok(stream) = stream {
                        let _ = serve(stream, &*answer, &seen, &over);
                    }
                });
            }
        });
        Self { address, log, connections, gone }
    }

    /// A server that has one file, whatever the path.
    pub fn of(data: &[u8]) -> Self {
        let data = data.to_vec();
        Self::new(move |request| Reply::ranged(&data, request).with("ETag", "\"v1\""))
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }

    /// What was asked for so far, in order: method, path and range.
    pub fn asked(&self) -> Vec<String> {
        let line = |it: &Request| format!("{} {} {}", it.method, it.path, it.header("range").unwrap_or("all"));
        self.requests().iter().map(line).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.gone.0.store(true, Ordering::SeqCst);
        let _lock = self.gone.1.lock();
        self.gone.2.notify_all();
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers the requests of one connection.
fn serve(
    mut stream: TcpStream,
    answer: &dyn Fn(&Request) -> Reply,
    log: &Mutex<Vec<Request>>,
    gone: &(AtomicBool, Mutex<()>, Condvar),
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut words = line.split_whitespace();
        let (method, path) = (words.next().unwrap_or("").to_owned(), words.next().unwrap_or("").to_owned());
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
                None => break,
            }
        }
        let request = {
            let mut log = log.lock().unwrap();
            let nth = log.len();
            log.push(Request { nth, method, path, headers });
            log.last().unwrap().clone()
        };
        // HEAD is refused, as signed links refuse it.
        let reply = if request.method == "GET" { answer(&request) } else { Reply::new(405) };
        if reply.silent {
            let mut lock = gone.1.lock().unwrap();
            while !gone.0.load(Ordering::SeqCst) {
                lock = gone.2.wait_timeout(lock, Duration::from_millis(50)).unwrap().0;
            }
            return Ok(());
        }
        let mut head = format!("HTTP/1.1 {} Said\r\n", reply.status);
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let said = reply.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        if !said && !reply.no_length && !reply.endless {
            head.push_str(&format!("Content-Length: {}\r\n", reply.body.len()));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes())?;
        stream.write_all(&reply.body[..reply.cut.unwrap_or(reply.body.len())])?;
        if reply.endless {
            loop {
                stream.write_all(&reply.body)?; // until nobody listens any more
            }
        }
        if said || reply.no_length || reply.cut.is_some() {
            return Ok(());
        }
    }
}

/// Asks again at once, and looks at no variable of the machine.
pub fn options() -> OpenOptions {
    OpenOptions {
        retry: Retry {
            first_wait: Duration::from_millis(1),
            longest_wait: Duration::from_millis(2),
            ..Retry::default()
        },
        environment: Environment::only([("NONE", "")]),
        ..OpenOptions::default()
    }
}

/// Bytes without a pattern, the same each time.
pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}
