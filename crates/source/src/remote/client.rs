//! The one HTTP client of the process.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::Client;
use reqwest::redirect::Policy;

use crate::SourceError;

/// Ready to be used, as long as it has what it needs.
pub(super) fn client(name: &Path) -> Result<&'static Client, SourceError> {
    static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();
    CLIENT.get_or_init(|| build().map_err(|error| cause(&error))).as_ref().map_err(|reason| SourceError::Setup {
        address: name.into(),
        reason: format!("there can be no connections: {reason}"),
    })
}

fn build() -> reqwest::Result<Client> {
    provide_tls();
    Client::builder()
        .user_agent(concat!("gguf2st/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none()) // `http` follows them itself, and keeps credentials from other hosts
        .referer(false)
        .connect_timeout(Duration::from_secs(20))
        .build()
}

/// Makes ring the process's provider of cryptography, unless the program chose one.
pub(super) fn provide_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that somebody else was faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// What lies under an error, in its own words. The layers above only say what was being done, and one of
/// them holds the URL.
pub(super) fn cause(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(below) = deepest.source() {
        deepest = below;
    }
    // Some of this is what a server sent.
    super::shown(&deepest.to_string())
}
