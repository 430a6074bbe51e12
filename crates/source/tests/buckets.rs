//! Object stores: what their clients make of a server's answers, and a real S3 API if there is one.
#![allow(clippy::unwrap_used)] // a test may panic
#![allow(clippy::print_stderr)] // and must say what it cannot do here

mod support;

use std::env;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use gguf2st_source::{Environment, Location, OpenOptions, Source, SourceError};
use support::{Reply, Server, noise, options};

/// What S3 says with every object.
fn object(reply: Reply) -> Reply {
    reply.with("ETag", "\"v1\"").with("Last-Modified", "Fri, 31 Dec 1999 23:59:59 GMT")
}

fn open(typed: &str, variables: &[(&str, &str)]) -> Result<Arc<dyn Source>, SourceError> {
    let environment = Environment::only(variables.iter().copied());
    Location::parse(typed).unwrap().open(&OpenOptions { environment, ..options() })
}

fn s3(server: &Server) -> Result<Arc<dyn Source>, SourceError> {
    open(
        "s3://bucket/dir/model.gguf",
        &[
            ("AWS_ENDPOINT_URL", &server.url("")),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "me"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_DEFAULT_REGION", "eu-north-1"),
        ],
    )
}

#[test]
fn ranges_of_an_object() {
    let data = noise(1_000_000);
    let sent = data.clone();
    let server = Server::new(move |request| object(Reply::ranged(&sent, request)));
    let source = s3(&server).unwrap();
    assert_eq!((source.len(), source.is_remote()), (1_000_000, true));
    assert_eq!(source.name().to_str(), Some("s3://bucket/dir/model.gguf"));
    assert_eq!(source.version(), "ETag \"v1\"");
    assert_eq!(source.read(0..300_000).unwrap(), data[..300_000]);
    assert_eq!(source.read(999_999..1_000_000).unwrap(), data[999_999..]);
    source.intact().unwrap();
    assert_eq!(
        server.asked(),
        [
            "GET /bucket/dir/model.gguf bytes=0-262143",
            "GET /bucket/dir/model.gguf bytes=262144-299999",
            "GET /bucket/dir/model.gguf bytes=999999-999999",
        ]
    );
    let signed = server.requests()[0].header("authorization").unwrap().to_owned();
    assert!(signed.starts_with("AWS4-HMAC-SHA256 Credential=me/") && signed.contains("/eu-north-1/s3/"), "{signed}");
    assert!(!format!("{source:?}").contains("secret"));
}

#[test]
fn other_stores_ask_alike() {
    let data = noise(300_000);
    let sent = data.clone();
    let server = Server::new(move |request| object(Reply::ranged(&sent, request)));
    let account = format!(
        r#"{{"gcs_base_url":"{}","disable_oauth":true,"client_email":"","private_key":"","private_key_id":""}}"#,
        server.url("")
    );
    let google = [("GOOGLE_SERVICE_ACCOUNT_KEY", account.as_str()), ("GOOGLE_ALLOW_HTTP", "true")];
    assert_eq!(open("gs://bucket/m.gguf", &google).unwrap().read(0..300_000).unwrap(), data);

    let endpoint = server.url("");
    let azure = [
        ("AZURE_STORAGE_ACCOUNT_NAME", "me"),
        ("AZURE_STORAGE_ENDPOINT", &endpoint),
        ("AZURE_SKIP_SIGNATURE", "true"),
        ("AZURE_ALLOW_HTTP", "true"),
    ];
    assert_eq!(open("az://box/m.gguf", &azure).unwrap().read(0..300_000).unwrap(), data);
    assert!(server.requests().iter().all(|request| request.method == "GET"));
}

#[test]
fn busy_stores_and_broken_answers() {
    let data = noise(1_000_000);
    let sent = data.clone();
    let server = Server::new(move |request| match request.nth {
        0 => Reply::new(503).body(b"<Error><Code>SlowDown</Code></Error>"),
        1 => Reply::new(429).with("Retry-After", 0),
        2 => object(Reply::ranged(&sent, request)).cut(100_000),
        3 => Reply::new(500),
        _ => object(Reply::ranged(&sent, request)),
    });
    let source = s3(&server).unwrap();
    assert_eq!(source.read(0..1_000_000).unwrap(), data);
    assert!(source.remote_stats().unwrap().retries >= 3);

    let server = Server::new(|_| Reply::new(503));
    let error = s3(&server).unwrap_err().to_string();
    assert!(error.contains("the store answers with status 503 (6 attempts)"), "{error}");
    assert_eq!(server.requests().len(), 6);
}

#[test]
fn refusals_are_final_and_show_nothing() {
    for (status, hint) in
        [(404, "no such object"), (403, "credentials"), (401, "credentials"), (400, "region"), (416, "range")]
    {
        let server =
            Server::new(move |_| Reply::new(status).body(b"<Error><AWSAccessKeyId>me</AWSAccessKeyId></Error>"));
        let error = s3(&server).unwrap_err().to_string();
        assert!(error.contains(hint) && !error.contains("AWSAccessKeyId"), "{error}");
        assert_eq!(server.requests().len(), 1, "{error}");
    }
    let error = open("s3://bucket/a//b", &[]).unwrap_err();
    assert!(matches!(error, SourceError::Address { .. }), "{error}");
    let error = open("az://box/m.gguf", &[]).unwrap_err();
    assert!(matches!(error, SourceError::Setup { .. }), "{error}");
}

#[test]
fn an_object_that_changes() {
    let data = noise(1_000_000);
    let server = Server::new(move |request| match request.nth {
        0 => object(Reply::ranged(&data, request)),
        _ => object(Reply::ranged(&data, request)).with("ETag", "\"v2\""),
    });
    let source = s3(&server).unwrap();
    let error = source.read(500_000..500_001).unwrap_err();
    assert!(matches!(error, SourceError::Replaced { what: "ETag", .. }), "{error}");
}

/// Sends a request with a signature that says nothing, at which a server for tests doesn't look.
fn put(endpoint: &str, path: &str, body: &[u8]) {
    let host = endpoint.strip_prefix("http://").unwrap().trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    let signed = "AWS4-HMAC-SHA256 Credential=me/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";
    let head = format!(
        "PUT {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {signed}\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn a_real_s3_api() {
    let Ok(endpoint) = env::var("GGUF2ST_TEST_S3") else {
        eprintln!("not run: GGUF2ST_TEST_S3 names no endpoint (moto_server gives one)");
        return;
    };
    let data = noise(3_000_000);
    put(&endpoint, "/models", b"");
    put(&endpoint, "/models/dir/m.gguf", &data);
    let keys = [("AWS_ACCESS_KEY_ID", "me"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("AWS_ALLOW_HTTP", "true")];
    let variables = [&keys[..], &[("AWS_ENDPOINT_URL", &endpoint)]].concat();
    let source = open("s3://models/dir/m.gguf", &variables).unwrap();
    assert_eq!(source.len(), 3_000_000);
    assert_eq!(source.read(0..3_000_000).unwrap(), data);
    assert_eq!(source.read(1_234_567..2_345_678).unwrap(), data[1_234_567..2_345_678]);
    source.intact().unwrap();
    let error = open("s3://models/dir/other.gguf", &variables).unwrap_err();
    assert!(matches!(error, SourceError::Refused { status: 404, .. }), "{error}");

    put(&endpoint, "/models/dir/m.gguf", &noise(2_000_000));
    let error = source.read(1_000_000..1_000_010).unwrap_err();
    assert!(matches!(error, SourceError::Replaced { .. }), "{error}");
}
