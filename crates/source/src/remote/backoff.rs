//! How long to wait before asking again, and when to stop asking.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::PROGRESS;
use crate::Retry;

/// What a server may make us wait.
const LONGEST_ASKED: Duration = Duration::from_secs(60);

/// The attempts since the last progress.
#[derive(Debug)]
pub(super) struct Backoff {
    retry: Retry,
    attempts: u32,
    bytes: u64,
}

impl Backoff {
    pub(super) fn new(retry: Retry) -> Self {
        Self { retry, attempts: 0, bytes: 0 }
    }

    /// So many bytes came.
    pub(super) fn progress(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= PROGRESS {
            (self.attempts, self.bytes) = (0, 0);
        }
    }

    /// An attempt failed: how long to wait before the next one, or how many there have been if that is
    /// enough.
    pub(super) fn next(&mut self, asked: Option<Duration>) -> Result<Duration, u32> {
        self.attempts += 1;
        if self.attempts >= self.retry.attempts {
            return Err(self.attempts);
        }
        let doubled = self.retry.first_wait.saturating_mul(1_u32.checked_shl(self.attempts - 1).unwrap_or(u32::MAX));
        // Between half of it and all of it. The keys of hash maps are as random as this needs.
        let random = u32::try_from(RandomState::new().hash_one(self.attempts) % 1024).unwrap_or(0);
        let whole = doubled.min(self.retry.longest_wait);
        let wait = whole / 2 + (whole / 2).mul_f64(f64::from(random) / 1024.0);
        Ok(wait.max(asked.unwrap_or_default().min(LONGEST_ASKED)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end() {
        let retry = Retry { attempts: 40, ..Retry::default() };
        let mut backoff = Backoff::new(retry);
        for attempt in 0..39 {
            let whole = retry.longest_wait.min(retry.first_wait * (1 << attempt.min(20)));
            let wait = backoff.next(None).unwrap();
            assert!(whole / 2 <= wait && wait <= whole, "{attempt}: {wait:?}");
        }
        assert_eq!(backoff.next(None), Err(40));
    }

    #[test]
    fn progress_gives_new_attempts_and_a_trickle_does_not() {
        let mut backoff = Backoff::new(Retry { attempts: 2, ..Retry::default() });
        for _ in 0..10 {
            backoff.progress(PROGRESS);
            backoff.next(None).unwrap();
        }
        backoff.progress(PROGRESS - 1);
        assert_eq!(backoff.next(None), Err(2));
    }

    #[test]
    fn a_server_may_ask_for_a_minute_at_most() {
        let mut backoff = Backoff::new(Retry::default());
        assert_eq!(backoff.next(Some(Duration::from_secs(7))), Ok(Duration::from_secs(7)));
        assert_eq!(backoff.next(Some(Duration::from_secs(1_000_000))), Ok(Duration::from_secs(60)));
    }

    #[test]
    fn at_least_one_attempt_and_no_more_than_asked_for() {
        assert_eq!(Backoff::new(Retry { attempts: 0, ..Retry::default() }).next(None), Err(1));
        assert_eq!(Backoff::new(Retry { attempts: 1, ..Retry::default() }).next(None), Err(1));
    }
}
