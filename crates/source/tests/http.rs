//! Sources behind HTTP, against servers that are good, odd or hostile.
#![allow(clippy::unwrap_used)] // a test may panic

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use gguf2st_source::{CountingSource, Location, NoRanges, OpenOptions, Retry, Source, SourceError};
use support::{Reply, Request, Server, noise, options};

const FIRST: usize = 256 << 10;

fn open(server: &Server) -> Result<Arc<dyn Source>, SourceError> {
    open_as(server, "/dir/model.gguf", &options())
}

fn open_as(server: &Server, path: &str, options: &OpenOptions) -> Result<Arc<dyn Source>, SourceError> {
    Location::parse(server.url(path)).unwrap().open(options)
}

/// A reply of `data` without range support.
fn whole(data: &[u8]) -> Reply {
    Reply::new(200).body(data).with("ETag", "\"v1\"")
}

#[test]
fn any_range_inside_and_none_outside() {
    let data = noise(1_000_000);
    let server = Server::of(&data);
    let source = open(&server).unwrap();
    assert_eq!(source.len(), 1_000_000);
    assert_eq!(source.name().to_str().unwrap(), server.url("/dir/model.gguf"));
    assert!(source.is_remote() && source.as_file().is_none());
    assert_eq!(source.version(), "ETag \"v1\"");
    for (from, to) in
        [(0, 4), (0, 0), (FIRST - 1, FIRST + 1), (FIRST, FIRST), (5, 900_000), (999_999, 1_000_000), (0, 1_000_000)]
    {
        let (start, end) = (from as u64, to as u64);
        assert_eq!(source.read(start..end).unwrap(), data[from..to]);
        let mut buf = vec![0; to - from];
        source.read_into(start, &mut buf).unwrap();
        assert_eq!(buf, data[from..to]);
    }
    #[allow(clippy::reversed_empty_ranges)]
    for range in [0..1_000_001, 9..8, 1_000_001..1_000_001, 0..u64::MAX] {
        assert!(matches!(source.read(range), Err(SourceError::OutOfRange { .. })));
    }
    source.intact().unwrap();
}

#[test]
fn what_is_asked_for() {
    let data = noise(1_000_000);
    let server = Server::of(&data);
    let source = open(&server).unwrap();
    source.read(0..200_000).unwrap(); // here already
    source.read(0..300_000).unwrap(); // only what isn't
    source.read(999_000..1_000_000).unwrap();
    source.read(500_000..500_000).unwrap();
    source.intact().unwrap();
    assert_eq!(
        server.asked(),
        [
            "GET /dir/model.gguf bytes=0-262143",
            "GET /dir/model.gguf bytes=262144-299999",
            "GET /dir/model.gguf bytes=999000-999999",
        ]
    );
    let request = &server.requests()[0];
    assert_eq!(request.header("accept-encoding"), Some("identity"));
    assert_eq!(request.header("authorization"), None);
    assert_eq!(server.connections(), 1);
    let stats = source.remote_stats().unwrap();
    assert_eq!((stats.requests, stats.retries, stats.bytes), (3, 0, 262_144 + 37_856 + 1_000));
}

#[test]
fn small_and_empty_files() {
    for len in [0, 1, 1000, FIRST, FIRST + 1] {
        let data = noise(len);
        let server = Server::of(&data);
        let source = open(&server).unwrap();
        assert_eq!(source.len(), len as u64);
        assert_eq!(source.read(0..len as u64).unwrap(), data);
        assert_eq!(server.asked().len(), if len > FIRST { 2 } else { 1 }, "{len}");
    }
}

#[test]
fn connections_that_break_are_gone_on_with_at_the_byte_reached() {
    let data = noise(3_000_000);
    let sent = data.clone();
    // Every other answer breaks off, each at another place.
    let server = Server::new(move |request| {
        let reply = Reply::ranged(&sent, request).with("ETag", "\"v1\"");
        let cut = (request.nth * 77_777 + 20_000) % reply.body.len();
        if request.nth % 2 == 0 { reply.cut(cut) } else { reply }
    });
    let source = open(&server).unwrap();
    assert_eq!(source.read(0..3_000_000).unwrap(), data);
    for pair in server.requests().windows(2).filter(|pair| pair[0].nth % 2 == 0) {
        let cut = (pair[0].nth * 77_777 + 20_000) % pair[0].range().len().min(3_000_000);
        // What a broken connection had in flight may be lost, but nothing is asked for twice that came.
        let next = pair[1].range().start;
        assert!((pair[0].range().start..=pair[0].range().start + cut).contains(&next), "{pair:?}");
    }
    assert!(source.remote_stats().unwrap().retries >= 2);
    assert_eq!(source.remote_stats().unwrap().bytes, 3_000_000);
}

#[test]
fn an_endless_trickle_is_given_up() {
    let data = noise(1_000_000);
    let server = Server::new(move |request| Reply::ranged(&data, request).cut(10));
    let error = open(&server).unwrap_err();
    assert!(matches!(error, SourceError::Fetch { attempts: 6, .. }), "{error}");
    assert_eq!(server.requests().len(), 6);
}

#[test]
fn parts_smaller_than_asked_for_are_put_together() {
    let data = noise(600_000);
    let sent = data.clone();
    let server = Server::new(move |request| {
        let asked = request.range();
        let end = asked.end.min(asked.start + 100_000).min(sent.len());
        let said = format!("bytes {}-{}/{}", asked.start, end - 1, sent.len());
        Reply::new(206).with("Content-Range", said).body(&sent[asked.start..end])
    });
    let source = open(&server).unwrap();
    assert_eq!(source.read(0..600_000).unwrap(), data);
    assert_eq!(source.remote_stats().unwrap().retries, 0);
}

#[test]
fn no_length_of_the_answer_and_more_than_was_asked_for() {
    let data = noise(600_000);
    let sent = data.clone();
    let server = Server::new(move |request| {
        let mut reply = Reply::ranged(&sent, request);
        reply.no_length = true;
        reply.body.extend_from_slice(b"and something that nobody asked for");
        reply
    });
    assert_eq!(open(&server).unwrap().read(0..600_000).unwrap(), data);

    let sent = data.clone();
    let server = Server::new(move |request| Reply { endless: true, ..Reply::ranged(&sent, request) });
    assert_eq!(open(&server).unwrap().read(0..600_000).unwrap(), data);
}

#[test]
fn answers_that_lie() {
    let odd = |change: fn(Reply) -> Reply| {
        let data = noise(600_000);
        let server = Server::new(move |request| change(Reply::ranged(&data, request)));
        let error = open(&server).unwrap_err();
        assert!(matches!(error, SourceError::Answer { .. }), "{error}");
        assert_eq!(server.requests().len(), 1); // asked for once
        error.to_string()
    };
    let texts = [
        odd(|reply| reply.with("Content-Range", "bytes 1-262144/600000")),
        odd(|reply| reply.with("Content-Range", "bytes 0-262144/600000")),
        odd(|reply| reply.with("Content-Range", "bytes 0-262143/1000")),
        odd(|reply| reply.with("Content-Range", "bytes 0-262143/*")),
        odd(|reply| reply.with("Content-Range", "bytes 9-3/600000")),
        odd(|reply| reply.with("Content-Range", "lines 0-262143/600000")),
        odd(|reply| Reply { headers: Vec::new(), ..reply }),
        odd(|reply| reply.with("Content-Length", 5)),
        odd(|reply| reply.with("Content-Encoding", "gzip")),
        odd(|_| Reply::new(416)),
        odd(|_| Reply::new(416).with("Content-Range", "bytes */600000")),
        odd(|_| Reply::new(204)),
        odd(|_| Reply::redirect("ftp://example.org/")),
        odd(|_| Reply::new(302)),
    ];
    assert!(texts[3].contains("doesn't say how long the file is"), "{}", texts[3]);
}

#[test]
fn a_body_shorter_than_its_length() {
    let data = noise(600_000);
    let server = Server::new(move |request| Reply::ranged(&data, request).cut(0));
    let error = open(&server).unwrap_err();
    assert!(matches!(error, SourceError::Fetch { attempts: 6, range, .. } if range == (0..262_144)));
    // Without a length the end of the connection looks like the end of the body.
    let data = noise(600_000);
    let server = Server::new(move |request| Reply { no_length: true, ..Reply::ranged(&data, request).cut(9) });
    let error = open(&server).unwrap_err().to_string();
    assert!(error.contains("ended") && error.contains("6 attempts"), "{error}");
}

#[test]
fn a_gigantic_length_costs_nothing() {
    let server = Server::new(|request| {
        let asked = request.range();
        let said = format!("bytes {}-{}/{}", asked.start, asked.end - 1, u64::MAX);
        Reply::new(206).with("Content-Range", said).body(&vec![7; asked.len().min(FIRST)])
    });
    let source = open(&server).unwrap();
    assert_eq!(source.len(), u64::MAX);
    let error = source.read(0..u64::MAX).unwrap_err();
    assert!(matches!(error, SourceError::Read { .. }), "{error}");
    assert_eq!(source.read(1 << 60..(1 << 60) + 3).unwrap(), [7; 3][..]);
}

#[test]
fn huge_headers() {
    let data = noise(1000);
    let server = Server::new(move |request| {
        let mut reply = Reply::ranged(&data, request);
        for at in 0..1000 {
            reply = reply.with(&format!("X-{at}"), "x".repeat(1000));
        }
        reply
    });
    let error = open(&server).unwrap_err();
    assert!(matches!(error, SourceError::Fetch { .. }), "{error}");
}

/// Opens a file, which then changes as `second` says, and reads on.
fn changed(first: fn(Reply) -> Reply, second: fn(Reply) -> Reply) -> Result<Vec<u8>, String> {
    let data = noise(1_000_000);
    let server = Server::new(move |request| {
        let reply = Reply::ranged(&data, request);
        if request.nth == 0 { first(reply) } else { second(reply) }
    });
    let source = open(&server).unwrap();
    let read = source.read(500_000..500_003);
    if read.is_err() {
        // Once seen, it is not forgotten, whatever is here already.
        assert!(matches!(source.intact(), Err(SourceError::Replaced { .. })));
        assert!(matches!(source.read(0..4), Err(SourceError::Replaced { .. })));
        assert_eq!(server.requests().len(), 2);
    }
    let shown = |error: SourceError| error.to_string().rsplit_once(".gguf: ").unwrap().1.to_owned();
    read.map(Vec::from).map_err(shown)
}

#[test]
fn a_file_that_changes() {
    assert_eq!(
        changed(|it| it.with("ETag", "\"a\""), |it| it.with("ETag", "\"b\"")).unwrap_err(),
        "changed while in use: its ETag was \"a\" when it was opened and is \"b\" now"
    );
    assert_eq!(
        changed(|it| it.with("ETag", "\"a\""), |it| it).unwrap_err(),
        "changed while in use: its ETag was \"a\" when it was opened and is absent now"
    );
    assert_eq!(
        changed(|it| it.with("Last-Modified", "Mon"), |it| it.with("Last-Modified", "Tue")).unwrap_err(),
        "changed while in use: its Last-Modified was Mon when it was opened and is Tue now"
    );
    assert_eq!(
        changed(|it| it, |it| it.with("Content-Range", "bytes 500000-500002/1000001")).unwrap_err(),
        "changed while in use: its length was 1000000 when it was opened and is 1000001 now"
    );
    assert_eq!(
        changed(|it| it, |_| Reply::new(416).with("Content-Range", "bytes */10")).unwrap_err(),
        "changed while in use: its length was 1000000 when it was opened and is 10 now"
    );
    // Servers behind one name may differ in the time of their copies, and in how sure they are.
    changed(|it| it.with("ETag", "\"a\"").with("Last-Modified", "Mon"), |it| it.with("ETag", "W/\"a\"")).unwrap();
    changed(|it| it, |it| it.with("ETag", "\"b\"")).unwrap();
}

#[test]
fn a_file_that_changes_under_a_broken_answer() {
    let data = noise(1_000_000);
    let server = Server::new(move |request| match request.nth {
        0 => Reply::ranged(&data, request).with("ETag", "\"a\"").cut(100_000),
        _ => Reply::ranged(&data, request).with("ETag", "\"b\""),
    });
    let error = open(&server).unwrap_err();
    assert!(matches!(error, SourceError::Replaced { what: "ETag", .. }), "{error}");
}

#[test]
fn busy_servers_are_asked_again() {
    let data = noise(600_000);
    let sent = data.clone();
    let server = Server::new(move |request| match request.nth {
        0 => Reply::new(429).with("Retry-After", 0),
        1 => Reply::new(503),
        2 => Reply::new(500).with("Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT"),
        3 => Reply::new(408),
        _ => Reply::ranged(&sent, request),
    });
    let source = open(&server).unwrap();
    assert_eq!(source.read(0..600_000).unwrap(), data);
    assert_eq!(source.remote_stats().unwrap().retries, 4);
}

#[test]
fn other_refusals_are_final_and_say_what_may_help() {
    for (status, hint) in
        [(401, "password"), (403, "expired"), (404, "no such file"), (410, "no such file"), (400, "take")]
    {
        let server = Server::new(move |_| Reply::new(status).body(b"what servers say isn't shown"));
        let error = open(&server).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, SourceError::Refused { status: it, .. } if it == status), "{text}");
        assert!(text.contains(hint) && !text.contains("servers say"), "{text}");
        assert_eq!(server.requests().len(), 1);
    }
    let server = Server::new(|_| Reply::new(502));
    let error = open(&server).unwrap_err().to_string();
    assert!(error.ends_with("bytes 0 to 262144 cannot be fetched: the server answers with status 502 (6 attempts)"));
    assert_eq!(server.requests().len(), 6);
}

#[test]
fn nobody_there() {
    let address = Server::of(b"").url("/model.gguf?secret=1");
    let error = Location::parse(&address).unwrap().open(&options()).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, SourceError::Fetch { .. }) && !text.contains("secret"), "{text}");
    assert!(text.to_lowercase().contains("refused"), "{text}");
    let error = Location::parse("http://name.invalid/m.gguf").unwrap().open(&options()).unwrap_err();
    assert!(matches!(error, SourceError::Fetch { .. }), "{error}");
}

#[test]
fn what_can_not_be_had_securely() {
    // Who speaks no TLS answers in plain words.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let secure = format!("https://{}/m.gguf?secret", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    thread::spawn(move || {
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let error = Location::parse(&secure).unwrap().open(&options()).unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(matches!(error, SourceError::Answer { .. }) && text.contains("no secure connection"), "{text}");
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(connections.load(Ordering::SeqCst), 1); // the next would be no better

    let server = Server::new(move |_| Reply::redirect(&secure));
    assert!(matches!(open(&server).unwrap_err(), SourceError::Answer { .. }));
}

#[test]
fn silence_is_not_waited_out() {
    let data = noise(600_000);
    let sent = data.clone();
    let server = Server::new(move |request| match request.nth {
        0 => Reply { silent: true, ..Reply::default() },
        _ => Reply::ranged(&sent, request),
    });
    let quick = Retry { silence: Duration::from_millis(300), ..options().retry };
    let source = open_as(&server, "/m.gguf", &OpenOptions { retry: quick, ..options() }).unwrap();
    assert_eq!(source.read(0..10).unwrap(), data[..10]);
    assert_eq!(source.remote_stats().unwrap().retries, 1);
}

#[test]
fn without_ranges_the_file_is_streamed_once_and_no_further_than_it_is_read() {
    let data = noise(3_000_000);
    let sent = data.clone();
    let server = Server::new(move |_| whole(&sent));
    let source = open(&server).unwrap();
    assert_eq!((source.len(), source.is_remote()), (3_000_000, true));
    assert_eq!(source.read(1000..2000).unwrap(), data[1000..2000]);
    assert!(source.remote_stats().unwrap().bytes < 3_000_000);
    assert_eq!(source.read(2_999_999..3_000_000).unwrap(), data[2_999_999..]);
    assert_eq!(source.read(0..3_000_000).unwrap(), data);
    assert_eq!(source.version(), "ETag \"v1\"");
    source.intact().unwrap();
    assert_eq!(server.requests().len(), 1);
    assert_eq!(source.remote_stats().unwrap().bytes, 3_000_000);
}

#[test]
fn without_ranges_and_with_breaks() {
    let data = noise(3_000_000);
    let sent = data.clone();
    let server = Server::new(move |request| match request.nth {
        0 => whole(&sent).cut(1_000_000),
        1 => whole(&sent).cut(500_000),
        _ => whole(&sent),
    });
    assert_eq!(open(&server).unwrap().read(0..3_000_000).unwrap(), data);
    assert_eq!(server.requests().len(), 3);

    let server = Server::new(move |request| match request.nth {
        0 => whole(&data).cut(1_000_000),
        _ => whole(&data).with("ETag", "\"v2\""),
    });
    let error = open(&server).unwrap().read(0..3_000_000).unwrap_err();
    assert!(matches!(error, SourceError::Replaced { what: "ETag", .. }), "{error}");
}

#[test]
fn without_ranges_and_without_a_length() {
    let data = noise(1_000_000);
    let sent = data.clone();
    let server = Server::new(move |_| Reply { no_length: true, ..whole(&sent) });
    let source = open(&server).unwrap();
    assert_eq!(source.read(0..1_000_000).unwrap(), data);
    assert_eq!(source.len(), 1_000_000);
}

#[test]
fn without_ranges_there_is_a_limit() {
    let data = noise(600_000);
    let limited = |no_ranges| OpenOptions { no_ranges, ..options() };
    let sent = data.clone();
    let server = Server::new(move |request| if request.path == "/small" { whole(&sent[..1000]) } else { whole(&sent) });

    let error = open_as(&server, "/m", &limited(NoRanges::Refuse)).unwrap_err();
    assert!(matches!(error, SourceError::NoRanges { limit: 0, .. }), "{error}");
    let source = open_as(&server, "/small", &limited(NoRanges::Refuse)).unwrap();
    assert_eq!(source.read(0..1000).unwrap(), data[..1000]);

    let source = open_as(&server, "/m", &limited(NoRanges::Spool { limit: 300_000 })).unwrap();
    assert_eq!(source.read(0..300_000).unwrap(), data[..300_000]);
    let error = source.read(0..300_001).unwrap_err();
    assert!(matches!(error, SourceError::NoRanges { limit: 300_000, .. }), "{error}");

    // Of an endless one no more than that is kept.
    let server = Server::new(move |_| Reply { endless: true, ..whole(&data) });
    let error = open_as(&server, "/m", &limited(NoRanges::Spool { limit: 2_000_000 })).unwrap_err();
    assert!(matches!(error, SourceError::NoRanges { limit: 2_000_000, .. }), "{error}");
}

#[test]
fn ranges_that_cease() {
    let data = noise(600_000);
    let server =
        Server::new(move |request| if request.nth == 0 { Reply::ranged(&data, request) } else { whole(&data) });
    let error = open(&server).unwrap().read(0..600_000).unwrap_err();
    assert!(matches!(error, SourceError::Answer { .. }), "{error}");
}

#[test]
fn redirects_are_followed_once_and_credentials_stay_at_home() {
    let data = noise(1_000_000);
    let target = Server::of(&data);
    // The same machine by another name is another host.
    let to = format!("http://localhost:{}/blob?Signature=0123", target.port());
    let server = Server::new(move |request| match request.path.as_str() {
        "/dir/model.gguf" => Reply::redirect("../other"),
        _ => Reply::redirect(&to),
    });
    let address = server.url("/dir/model.gguf").replace("//", "//me:p%40ss@");
    let location = Location::parse(address).unwrap();
    let source = location.open(&options()).unwrap();
    assert_eq!(source.read(0..1_000_000).unwrap(), data);
    assert_eq!(server.asked(), ["GET /dir/model.gguf bytes=0-262143", "GET /other bytes=0-262143"]);
    for request in server.requests() {
        assert_eq!(request.header("authorization"), Some("Basic bWU6cEBzcw=="));
    }
    assert_eq!(
        target.asked(),
        ["GET /blob?Signature=0123 bytes=0-262143", "GET /blob?Signature=0123 bytes=262144-999999"]
    );
    for request in target.requests() {
        assert_eq!(request.header("authorization"), None);
        assert_eq!(request.header("referer"), None);
    }
    for shown in [location.to_string(), format!("{location:?} {source:?}"), source.name().display().to_string()] {
        assert!(!shown.contains("p%40ss") && !shown.contains("p@ss") && !shown.contains("Signature"), "{shown}");
    }
    assert_eq!(source.remote_stats().unwrap().requests, 4);
}

#[test]
fn a_link_that_expires_is_asked_for_anew() {
    let data = noise(1_000_000);
    for status in [403, 400, 404] {
        let sent = data.clone();
        // Each link is good for one request.
        let target = Server::new(move |request: &Request| match request.path == format!("/{}", request.nth) {
            true => Reply::ranged(&sent, request).with("ETag", "\"v1\""),
            false => Reply::new(status),
        });
        let (base, next) = (target.url("/"), AtomicUsize::new(0));
        let server = Server::new(move |_| Reply::redirect(format!("{base}{}", next.fetch_add(2, Ordering::SeqCst))));
        let source = open(&server).unwrap();
        assert_eq!(source.read(300_000..300_010).unwrap(), data[300_000..300_010]);
        assert_eq!(source.read(400_000..400_010).unwrap(), data[400_000..400_010]);
        assert_eq!(server.requests().len(), 3);
        assert_eq!(source.remote_stats().unwrap().retries, 0);
    }
}

#[test]
fn a_storage_that_fails_is_asked_for_anew() {
    let data = noise(1_000_000);
    let sent = data.clone();
    let good = Server::new(move |request| Reply::ranged(&sent, request));
    let sent = data.clone();
    let failing =
        Server::new(move |request| if request.nth == 0 { Reply::ranged(&sent, request) } else { Reply::new(503) });
    let to = [failing.url("/"), good.url("/")];
    let server = Server::new(move |request| Reply::redirect(&to[request.nth]));
    let source = open(&server).unwrap();
    assert_eq!(source.read(500_000..1_000_000).unwrap(), data[500_000..]);
    assert_eq!((server.requests().len(), failing.requests().len(), good.requests().len()), (2, 2, 1));
}

#[test]
fn a_link_that_is_never_good() {
    let target = Server::new(|_| Reply::new(403));
    let to = target.url("/?Signature=0123");
    let server = Server::new(move |_| Reply::redirect(&to));
    let error = open(&server).unwrap_err().to_string();
    assert!(error.contains("status 403") && !error.contains("0123"), "{error}");

    let server = Server::new(|request| Reply::redirect(&request.path));
    let error = open(&server).unwrap_err().to_string();
    assert!(error.contains("more than 10 redirects"), "{error}");
}

#[test]
fn errors_show_no_secrets() {
    let servers = [
        Server::new(|_| Reply::new(403)),
        Server::new(|_| Reply::new(500)),
        Server::new(|_| Reply::new(204)),
        Server::new(|_| Reply::new(206).cut(0)),
        Server::new(|_| Reply { headers: vec![("bad header".into(), "\u{1}".into())], ..Reply::new(200) }),
    ];
    for server in &servers {
        let address = server.url("/m.gguf?token=secret#secret").replace("//", "//secret:secret@");
        let error = Location::parse(address).unwrap().open(&options()).unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(text.contains("/m.gguf") && !text.contains("secret"), "{text}");
    }
}

#[test]
fn fetching_from_any_runtime_and_many_at_once() {
    let data = noise(4_000_000);
    let server = Server::of(&data);
    let source = CountingSource::new(open(&server).unwrap());
    let ranges: Vec<_> = (0..16_u64).map(|at| at * 250_000..(at + 1) * 250_000).collect();
    // A runtime that can do nothing but poll.
    let fetched = block_on(async {
        let mut all = Vec::new();
        for range in &ranges {
            all.push(source.fetch(range.clone()).unwrap());
        }
        let mut bytes = Vec::new();
        for one in all {
            bytes.extend_from_slice(&one.await.unwrap());
        }
        bytes
    });
    assert_eq!(fetched, data);
    assert_eq!(source.ranges(), ranges);
    // A future that nobody polls asks for nothing, and one out of range is an error.
    let before = server.requests().len();
    drop(source.fetch(300_000..400_000));
    assert!(block_on(source.fetch(0..4_000_001).unwrap()).is_err());
    assert_eq!(server.requests().len(), before);

    thread::scope(|scope| {
        for range in &ranges {
            scope.spawn(|| {
                let from = usize::try_from(range.start).unwrap();
                assert_eq!(source.read(range.clone()).unwrap(), data[from..from + 250_000]);
            });
        }
    });
}

/// The smallest runtime there is.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    use std::task::{Context, Poll, Wake, Waker};
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
