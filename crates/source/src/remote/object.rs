//! One object of a store: S3 and what speaks like it, Google Cloud Storage, Azure's blobs.

use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path as Key;
use object_store::{ClientOptions, GetOptions, GetRange, ObjectStore, RetryConfig};

use super::client::{cause, provide_tls};
use super::http::retry_after;
use super::{Answer, Body, Counters, Origin, Trouble, Version};
use crate::location::Bucket;
use crate::{BoxFuture, Environment, OpenOptions, SourceError};

/// One object of a store.
pub(super) struct ObjectOrigin {
    name: PathBuf,
    store: Box<dyn ObjectStore>,
    key: Key,
    silence: Duration,
}

impl ObjectOrigin {
    pub(super) fn new(name: PathBuf, bucket: &Bucket, options: &OpenOptions) -> Result<Self, SourceError> {
        provide_tls();
        let key = Key::parse(&bucket.key)
            .map_err(|_| SourceError::Address { address: name.clone(), reason: "its key has empty or odd parts" })?;
        let store = build(bucket, &options.environment)
            .map_err(|error| SourceError::Setup { address: name.clone(), reason: cause(&error) })?;
        Ok(Self { name, store, key, silence: options.retry.silence })
    }

    async fn ask(&self, range: Range<u64>, counters: &Counters) -> Result<Answer, Trouble> {
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        counters.request();
        let got = match tokio::time::timeout(self.silence, self.store.get_opts(&self.key, options)).await {
            Ok(Ok(got)) => got,
            Ok(Err(error)) => return Err(self.trouble(&error)),
            Err(_) => return Err(silent(self.silence)),
        };
        let version = Version {
            len: got.meta.size,
            etag: got.meta.e_tag.clone(),
            modified: Some(got.meta.last_modified.to_rfc3339()),
        };
        let range = got.range.clone();
        let body = Box::new(ObjectBody { stream: got.into_stream(), silence: self.silence });
        Ok(Answer::Part { range, version, body })
    }

    /// What an error of the store's means for us. Its own text may hold more than should be shown.
    fn trouble(&self, error: &object_store::Error) -> Trouble {
        let refused =
            |status, hint| Trouble::Lasting(SourceError::Refused { address: self.name.clone(), status, hint });
        match (error, No::under(error)) {
            (_, Some(&No { status, after })) if status >= 500 || matches!(status, 408 | 425 | 429) => {
                Trouble::Passing { reason: format!("the store answers with status {status}"), after }
            }
            (_, Some(No { status: 416, .. })) => {
                self.unusable("it has no such range: the object is empty, or shorter than it was")
            }
            (_, Some(&No { status, .. })) => {
                refused(status, "the store does not take the request (region, endpoint, key?)")
            }
            (object_store::Error::NotFound { .. }, _) => refused(404, "there is no such object or bucket"),
            (object_store::Error::PermissionDenied { .. }, _) => refused(403, CREDENTIALS),
            (object_store::Error::Unauthenticated { .. }, _) => refused(401, CREDENTIALS),
            _ => Trouble::passing(cause(error)),
        }
    }

    fn unusable(&self, reason: &str) -> Trouble {
        Trouble::Lasting(SourceError::Answer { address: self.name.clone(), reason: reason.to_owned() })
    }
}

const CREDENTIALS: &str = "it wants credentials that may read this, or, for a public S3 bucket, AWS_SKIP_SIGNATURE=true (see the environment variables of each store)";

/// The store that an address is of, set up by the environment. Retrying is not its business but ours: it
/// would begin an answer again where we go on.
fn build(bucket: &Bucket, environment: &Environment) -> object_store::Result<Box<dyn ObjectStore>> {
    let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
    Ok(match bucket.scheme {
        "s3" => {
            let mut builder = AmazonS3Builder::new();
            for (name, value) in environment.all("AWS_") {
                if let Ok(key) = name.to_ascii_lowercase().parse() {
                    builder = builder.with_config(key, value);
                }
            }
            Box::new(builder.with_bucket_name(&bucket.bucket).with_retry(retry).with_http_connector(Connector).build()?)
        }
        "gs" => {
            let mut builder = GoogleCloudStorageBuilder::new();
            if let Some(path) = environment.text("SERVICE_ACCOUNT") {
                builder = builder.with_service_account_path(path);
            }
            for (name, value) in environment.all("GOOGLE_") {
                if let Ok(key) = name.to_ascii_lowercase().parse() {
                    builder = builder.with_config(key, value);
                }
            }
            Box::new(builder.with_bucket_name(&bucket.bucket).with_retry(retry).with_http_connector(Connector).build()?)
        }
        _ => {
            let mut builder = MicrosoftAzureBuilder::new();
            for (name, value) in environment.all("AZURE_") {
                if let Ok(key) = name.to_ascii_lowercase().parse() {
                    builder = builder.with_config(key, value);
                }
            }
            if let Some(endpoint) = environment.text("IDENTITY_ENDPOINT") {
                builder = builder.with_msi_endpoint(endpoint);
            }
            Box::new(
                builder.with_container_name(&bucket.bucket).with_retry(retry).with_http_connector(Connector).build()?,
            )
        }
    })
}

/// An answer that is no success.
///
/// The store's own errors keep the status to themselves, in a text with much else; so it is put beneath
/// them, where it can be found again.
#[derive(Debug)]
struct No {
    status: u16,
    after: Option<Duration>,
}

impl No {
    /// The answer that an error is about.
    fn under(error: &object_store::Error) -> Option<&Self> {
        let mut below = error.source();
        while let Some(error) = below {
            if let Some(no) = error.downcast_ref() {
                return Some(no);
            }
            below = error.source();
        }
        None
    }
}

impl fmt::Display for No {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the answer has status {}", self.status)
    }
}

impl Error for No {}

/// Connects as the store would, but for [`No`].
#[derive(Debug)]
struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Service(ReqwestConnector::default().connect(options)?)))
    }
}

#[derive(Debug)]
struct Service(HttpClient);

impl HttpService for Service {
    fn call<'a, 'b>(&'a self, request: HttpRequest) -> BoxFuture<'b, Result<HttpResponse, HttpError>>
    where
        'a: 'b,
        Self: 'b,
    {
        // What gets credentials asks otherwise, and understands its own answers.
        let object = request.method().as_str() == "GET";
        Box::pin(async move {
            let response = self.0.execute(request).await?;
            let status = response.status().as_u16();
            if !object || status < 400 || matches!(status, 401 | 403 | 404) {
                return Ok(response);
            }
            let after = response.headers().get("retry-after").and_then(|after| retry_after(after.to_str().ok()?));
            Err(HttpError::new(HttpErrorKind::Unknown, No { status, after }))
        })
    }
}

fn silent(silence: Duration) -> Trouble {
    Trouble::passing(format!("the store was silent for {silence:?}"))
}

impl Origin for ObjectOrigin {
    fn get<'a>(&'a self, range: Range<u64>, counters: &'a Counters) -> BoxFuture<'a, Result<Answer, Trouble>> {
        Box::pin(self.ask(range, counters))
    }
}

impl fmt::Debug for ObjectOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectOrigin").field("name", &self.name).finish_non_exhaustive()
    }
}

/// An object's bytes.
struct ObjectBody {
    stream: BoxStream<'static, object_store::Result<Bytes>>,
    silence: Duration,
}

impl Body for ObjectBody {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Trouble>> {
        Box::pin(async {
            match tokio::time::timeout(self.silence, self.stream.next()).await {
                Ok(None) => Ok(None),
                Ok(Some(Ok(piece))) => Ok(Some(piece)),
                Ok(Some(Err(error))) => Err(Trouble::passing(cause(&error))),
                Err(_) => Err(silent(self.silence)),
            }
        })
    }
}
