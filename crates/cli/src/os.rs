//! What differs between systems.

use std::path::Path;

/// Bytes that the file system of an output has left for this user: that of the nearest folder that exists. `None`
/// where it can't be told.
#[cfg(unix)]
pub(crate) fn free_space(output: &Path) -> Option<u64> {
    // The first ancestor that is there; a bare name is in the folder that the program runs in.
    let folder = output.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(not(unix))]
pub(crate) fn free_space(_output: &Path) -> Option<u64> {
    None
}
