//! One file of an HTTP server.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName,
    HeaderValue, LAST_MODIFIED, LOCATION, RANGE, RETRY_AFTER,
};
use reqwest::{Client, Response, StatusCode, Url};

use super::client::{cause, client};
use super::{Answer, Body, Counters, Origin, Trouble, Version, Whole};
use crate::location::Web;
use crate::{BoxFuture, OpenOptions, SourceError};

/// How many redirects may follow one another.
const REDIRECTS: usize = 10;

/// What a refusal most likely means, by who refuses.
pub(crate) mod hints {
    /// For 401 and 403, and for 404.
    pub(crate) type Hints = (&'static str, &'static str);

    pub(crate) const WEB: Hints = (
        "it wants a user and password (https://USER:PASSWORD@HOST/…), or a signed link has expired",
        "there is no such file",
    );
    #[cfg(feature = "hub")]
    pub(crate) const HUB: Hints = (
        "the repository does not exist, or is private or gated and needs a token that may read it (HF_TOKEN)",
        "there is no such repository, revision or file",
    );
}

/// What goes into an `Authorization` header, and nowhere else.
#[derive(Clone)]
pub(crate) struct Secret(HeaderValue);

impl Secret {
    /// `Bearer TOKEN`; `None` if the token holds what no header can.
    #[cfg(feature = "hub")]
    pub(crate) fn bearer(token: &str) -> Option<Self> {
        Self::new(&format!("Bearer {token}"))
    }

    fn new(value: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }
}

/// One file of an HTTP server.
pub(crate) struct HttpOrigin {
    name: PathBuf,
    client: &'static Client,
    url: Url,
    /// For the URL's own host, by the URL's own scheme, on its own port.
    secret: Option<Secret>,
    hints: hints::Hints,
    silence: Duration,
    /// Where redirects led the last time.
    target: Mutex<Option<Url>>,
}

impl HttpOrigin {
    pub(crate) fn new(
        name: PathBuf,
        web: &Web,
        hints: hints::Hints,
        options: &OpenOptions,
    ) -> Result<Self, SourceError> {
        let wrong = |reason| SourceError::Address { address: name.clone(), reason };
        let mut text = format!("{}://{}{}", web.scheme, web.host, web.path);
        if let Some(query) = &web.query {
            text.push('?');
            text.push_str(query);
        }
        // The error's own words may quote the URL.
        let url = Url::parse(&text).map_err(|_| wrong("it is no URL"))?;
        let secret = match &web.user {
            None => None,
            Some(user) => Some(basic(user).ok_or_else(|| wrong("its user or password can't be sent"))?),
        };
        Ok(Self {
            client: client(&name)?,
            name,
            url,
            secret,
            hints,
            silence: options.retry.silence,
            target: Mutex::default(),
        })
    }

    /// The same file, asked for with this.
    #[cfg(feature = "hub")]
    pub(crate) fn with_secret(self, secret: Option<Secret>) -> Self {
        Self { secret, ..self }
    }

    fn target(&self) -> MutexGuard<'_, Option<Url>> {
        // One value, whole after every assignment.
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, range: Range<u64>, counters: &Counters) -> Result<Answer, Trouble> {
        // Not in one expression with what follows: the lock must not be held while others wait.
        let known = self.target().clone();
        if let Some(url) = known {
            match self.send(&url, &range, counters).await {
                Ok(response) if !expired(&response) => {
                    if response.status().is_server_error() {
                        *self.target() = None; // the next attempt may be led elsewhere
                    }
                    return self.answer(response);
                }
                // A link that leads on no longer, or nobody there: from the start again, now or the next time.
                Ok(_) => *self.target() = None,
                Err(trouble) => {
                    *self.target() = None;
                    return Err(trouble);
                }
            }
        }
        let mut url = self.url.clone();
        for _ in 0..=REDIRECTS {
            let response = self.send(&url, &range, counters).await?;
            let Some(next) = self.redirect(&url, &response)? else {
                if response.status().is_success() && url != self.url {
                    *self.target() = Some(url);
                }
                return self.answer(response);
            };
            url = next;
        }
        Err(self.unusable(format!("more than {REDIRECTS} redirects")))
    }

    /// One request, until its answer's body begins.
    async fn send(&self, url: &Url, range: &Range<u64>, counters: &Counters) -> Result<Response, Trouble> {
        let mut request = self
            .client
            .get(url.clone())
            .header(RANGE, format!("bytes={}-{}", range.start, range.end - 1))
            .header(ACCEPT_ENCODING, "identity"); // a range of something else is of no use
        if let Some(Secret(value)) = &self.secret
            && url.origin() == self.url.origin()
        {
            request = request.header(AUTHORIZATION, value);
        }
        counters.request();
        within(&self.name, self.silence, request.send()).await
    }

    /// Where a redirect leads; `None` if the answer is none.
    fn redirect(&self, from: &Url, response: &Response) -> Result<Option<Url>, Trouble> {
        if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let location = text(response.headers(), &LOCATION);
        let next = location.and_then(|location| from.join(location).ok());
        let Some(next) = next.filter(|next| matches!(next.scheme(), "http" | "https")) else {
            return Err(self.unusable("a redirect that leads nowhere"));
        };
        if from.scheme() == "https" && next.scheme() != "https" {
            return Err(self.unusable("a redirect from https to http"));
        }
        Ok(Some(next))
    }

    /// What an answer that is no redirect says.
    fn answer(&self, response: Response) -> Result<Answer, Trouble> {
        let headers = response.headers();
        let mark = |name: &HeaderName| text(headers, name).map(str::to_owned);
        let (etag, modified) = (mark(&ETAG), mark(&LAST_MODIFIED));
        if text(headers, &CONTENT_ENCODING).is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
            return Err(self.unusable("it is compressed although that was not asked for"));
        }
        let said = text(headers, &CONTENT_RANGE).map(str::to_owned);
        let length = text(headers, &CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let Some(said) = said else {
                    return Err(self.unusable("it is a part that doesn't say which"));
                };
                let Some((Some(range), len)) = content_range(&said) else {
                    return Err(self.unusable("it is a part that says a range which is none"));
                };
                let Some(len) = len else {
                    return Err(self.unusable("it doesn't say how long the file is"));
                };
                if length.is_some_and(|length| length != range.end - range.start) {
                    return Err(self.unusable("its length is not that of the range that it says it has"));
                }
                let body = Box::new(HttpBody { name: self.name.clone(), response, silence: self.silence });
                Ok(Answer::Part { range, version: Version { len, etag, modified }, body })
            }
            StatusCode::RANGE_NOT_SATISFIABLE => match said.as_deref().and_then(content_range) {
                Some((None, Some(len))) => Ok(Answer::Outside { version: Version { len, etag, modified } }),
                _ => Err(self.unusable("the range is said to be outside of the file, but not how long that is")),
            },
            StatusCode::OK => {
                let body = Box::new(HttpBody { name: self.name.clone(), response, silence: self.silence });
                Ok(Answer::Whole(Whole { len: length, etag, modified, body }))
            }
            status if status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429) => {
                let after = text(headers, &RETRY_AFTER).and_then(retry_after);
                Err(Trouble::Passing { reason: format!("the server answers with status {}", status.as_u16()), after })
            }
            status if status.is_client_error() => Err(Trouble::Lasting(SourceError::Refused {
                address: self.name.clone(),
                status: status.as_u16(),
                hint: match status.as_u16() {
                    401 | 403 => self.hints.0,
                    404 | 410 => self.hints.1,
                    _ => "it does not take the request",
                },
            })),
            status => Err(self.unusable(format!("status {}", status.as_u16()))),
        }
    }

    fn unusable(&self, reason: impl Into<String>) -> Trouble {
        Trouble::Lasting(SourceError::Answer { address: self.name.clone(), reason: reason.into() })
    }
}

impl Origin for HttpOrigin {
    fn get<'a>(&'a self, range: Range<u64>, counters: &'a Counters) -> BoxFuture<'a, Result<Answer, Trouble>> {
        Box::pin(self.ask(range, counters))
    }
}

impl fmt::Debug for HttpOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the URLs: they may be signed.
        f.debug_struct("HttpOrigin").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A response's body.
struct HttpBody {
    name: PathBuf,
    response: Response,
    silence: Duration,
}

impl Body for HttpBody {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Trouble>> {
        Box::pin(within(&self.name, self.silence, self.response.chunk()))
    }
}

/// Waits for something to come in, but not forever.
async fn within<T>(
    name: &Path,
    silence: Duration,
    coming: impl Future<Output = reqwest::Result<T>>,
) -> Result<T, Trouble> {
    match tokio::time::timeout(silence, coming).await {
        Ok(Ok(came)) => Ok(came),
        Ok(Err(error)) => {
            let reason = cause(&error);
            if insecure(&error) {
                let reason = format!("no secure connection: {reason}");
                return Err(Trouble::Lasting(SourceError::Answer { address: name.into(), reason }));
            }
            Err(Trouble::passing(reason))
        }
        Err(_) => Err(Trouble::passing(format!("the server was silent for {silence:?}"))),
    }
}

/// Whether it is TLS that failed: a certificate that isn't trusted will not be at the next attempt.
fn insecure(error: &(dyn Error + 'static)) -> bool {
    // What an I/O error wraps is not its source, but its source's place.
    let wrapped = || error.downcast_ref::<io::Error>()?.get_ref();
    error.is::<rustls::Error>() || wrapped().is_some_and(|it| insecure(it)) || error.source().is_some_and(insecure)
}

/// Whether a link that worked before works no longer, so that it must be asked for anew.
fn expired(response: &Response) -> bool {
    let status = response.status();
    status.is_redirection() || (status.is_client_error() && !matches!(status.as_u16(), 408 | 416 | 425 | 429))
}

/// The header's value, if it is text.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The range and the whole length in `bytes 0-9/100`, either of which may be a star.
fn content_range(said: &str) -> Option<(Option<Range<u64>>, Option<u64>)> {
    // No sign, no blank.
    let number =
        |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse::<u64>().ok())?;
    let (unit, rest) = said.trim().split_once(' ')?;
    let (range, len) = rest.trim().split_once('/')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let len = if len == "*" { None } else { Some(number(len)?) };
    if range == "*" {
        return Some((None, len));
    }
    let (first, last) = range.split_once('-')?;
    let (first, end) = (number(first)?, number(last)?.checked_add(1)?);
    (first < end).then_some((Some(first..end), len))
}

/// How long to wait, said in seconds or by a date.
pub(super) fn retry_after(said: &str) -> Option<Duration> {
    match said.trim().parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(said.trim()).ok()?.duration_since(SystemTime::now()).ok(),
    }
}

/// `Basic …` for an encoded `USER:PASSWORD`.
fn basic(user: &str) -> Option<Secret> {
    let mut plain = percent(user)?;
    if !user.contains(':') {
        plain.push(b':');
    }
    Secret::new(&format!("Basic {}", base64(&plain)))
}

/// The bytes behind a URL's escapes.
fn percent(encoded: &str) -> Option<Vec<u8>> {
    let mut parts = encoded.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes)
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_usize, |bits, &byte| bits << 8 | usize::from(byte)) << (8 * (3 - group.len()));
        for digit in 0..4 {
            match digit <= group.len() {
                true => text.push(char::from(DIGITS[bits >> (18 - 6 * digit) & 63])),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_servers_say() {
        assert_eq!(content_range("bytes 0-9/100"), Some((Some(0..10), Some(100))));
        assert_eq!(content_range("Bytes 5-5/*"), Some((Some(5..6), None)));
        assert_eq!(content_range("bytes */7"), Some((None, Some(7))));
        for odd in [
            "",
            "bytes",
            "bytes 0-9",
            "0-9/100",
            "items 0-9/100",
            "bytes 9-0/100",
            "bytes -9/100",
            "bytes +0-9/100",
            "bytes 0-18446744073709551615/100",
            "bytes 0-9/99999999999999999999",
            "bytes 0-/100",
        ] {
            assert_eq!(content_range(odd), None, "{odd}");
        }
    }

    #[test]
    fn waits_that_servers_ask_for() {
        assert_eq!(retry_after("0"), Some(Duration::ZERO));
        assert_eq!(retry_after(" 12 "), Some(Duration::from_secs(12)));
        assert!(retry_after("Fri, 31 Dec 2100 23:59:59 GMT") > Some(Duration::from_secs(1)));
        assert_eq!(retry_after("Fri, 31 Dec 1999 23:59:59 GMT"), None);
        assert_eq!(retry_after("soon"), None);
    }

    #[test]
    fn users_and_passwords() {
        // The examples of RFC 4648 and RFC 7617.
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        let sent = |user| basic(user).map(|secret| secret.0);
        assert_eq!(sent("Aladdin:open%20sesame").unwrap(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(sent("me").unwrap(), "Basic bWU6");
        assert!(sent("a%zz").is_none());
        assert!(!format!("{:?}", sent("me")).contains("bWU6"));
    }
}
