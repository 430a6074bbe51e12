//! Opening what the user points at.

use std::path::Path;
use std::sync::Arc;

use gguf2st_convert::{ConvertError, Model};
use gguf2st_source::{FileSource, MmapSource, Source, SourceError};

/// Opens a model on this machine and parses its head. The file is mapped, so that nothing behind the head is
/// brought in and the head is not copied; where mapping is impossible, it is read plainly.
pub(crate) fn model(path: &Path) -> Result<Model, ConvertError> {
    Model::open(local(path)?)
}

/// Opens a file on this machine whose bytes are all wanted, by plain reads into buffers that are used again.
pub(crate) fn plainly(path: &Path) -> Result<Arc<dyn Source>, SourceError> {
    Ok(Arc::new(FileSource::open(path)?))
}

fn local(path: &Path) -> Result<Arc<dyn Source>, SourceError> {
    match MmapSource::open(path) {
        Ok(source) => Ok(Arc::new(source)),
        // Some network and kernel file systems have no mappings.
        Err(SourceError::Map { .. }) => Ok(Arc::new(FileSource::open(path)?)),
        Err(error) => Err(error),
    }
}
