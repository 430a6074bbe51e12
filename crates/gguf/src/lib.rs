#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod check;
mod error;
mod escape;
mod file;
mod foreign;
mod header;
mod layout;
pub mod limits;
mod metadata;
mod names;
mod naming;
mod reader;
mod tensors;
mod types;
mod value;
pub mod write;

pub use bstr;
pub use check::{Check, Verdict};
pub use error::{ParserError, Place, SliceFault};
pub use escape::{Escaped, is_deceptive};
pub use file::{Element, GgufFile, parse_gguf};
pub use foreign::Foreign;
pub use header::{Header, MAGIC};
pub use metadata::{FromValue, Metadata, ValueFault};
pub use naming::{SplitKeyFault, SplitKeys, SplitName};
pub use reader::ByteOrder;
pub use tensors::{Dims, TensorInfo, Tensors};
pub use types::{Family, GgmlType, UnknownValueTypeId, ValueType};
pub use value::{Array, ArrayIter, OwnedValue, SHOWN_ELEMENTS, Value};
