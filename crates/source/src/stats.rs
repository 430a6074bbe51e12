//! What remote sources count.

/// What a remote source has asked of its server so far; see [`Source::remote_stats`](crate::Source::remote_stats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteStats {
    /// Requests sent, those that redirects led to included.
    pub requests: u64,
    /// How many of the attempts were there because one before them failed.
    pub retries: u64,
    /// Bytes of the file that were received; one received twice counts twice.
    pub bytes: u64,
}
