//! The unit of work: a run of whole units (blocks, numbers, bytes) of one output tensor, sized to stay in
//! cache.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use gguf2st_gguf::ByteOrder;
use gguf2st_quants::{Decoded, Target, bf16, decode, f16};
use gguf2st_source::Source;

use crate::dtype::Dtype;
use crate::error::ConvertError;
use crate::plan::{Plan, PlannedTensor, Step};

/// Bytes of output a tile: input and output of one stay in a core's second-level cache.
const TILE: u64 = 256 << 10;

/// Where a tile's bytes come from and go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tile {
    /// Position of its tensor in the plan.
    pub(crate) tensor: usize,
    /// The bytes that it is made of, from the source's start.
    pub(crate) source: Range<u64>,
    /// Where its first byte goes, from the tensor's start.
    pub(crate) offset: u64,
    /// Bytes that it becomes.
    pub(crate) bytes: u64,
}

/// The tiles of one tensor, in order; together its bytes, each once.
pub(crate) fn tiles_of(position: usize, tensor: &PlannedTensor) -> impl Iterator<Item = Tile> {
    let (from, to) = tensor.recipe.step.unit(tensor.dtype);
    let units = (TILE / to).max(1);
    let mut piece_start = 0;
    tensor.recipe.pieces.iter().flat_map(move |piece| {
        let total = (piece.end - piece.start) / from;
        let offset = piece_start;
        piece_start += total * to;
        (0..total.div_ceil(units)).map(move |tile| {
            let first = tile * units;
            let count = units.min(total - first);
            let start = piece.start + first * from;
            Tile {
                tensor: position,
                source: start..start + count * from,
                offset: offset + first * to,
                bytes: count * to,
            }
        })
    })
}

/// The tiles of a plan, in the order of the output's bytes.
pub(crate) fn tiles(plan: &Plan) -> impl Iterator<Item = Tile> {
    plan.tensors.iter().enumerate().flat_map(|(position, tensor)| tiles_of(position, tensor))
}

/// Makes tiles, one after the other, in buffers of its own.
#[derive(Debug, Default)]
pub(crate) struct Maker {
    source: Vec<u8>,
    /// Words, so that floats of any dtype lie aligned in it.
    made: Vec<u32>,
}

impl Maker {
    /// The bytes of a tile as they stand in the output, and how many finite values became infinite.
    pub(crate) fn make<'m>(
        &'m mut self,
        source: &'m dyn Source,
        tensor: &PlannedTensor,
        tile: &Tile,
        view: &'m mut bytes::Bytes,
    ) -> Result<(&'m [u8], u64), ConvertError> {
        let len = usize::try_from(tile.source.end - tile.source.start).map_err(|_| ConvertError::Overflow)?;
        let stored: &mut [u8] = if source.hands_out_views() {
            *view = source.read(tile.source.clone())?;
            if tensor.recipe.step == Step::Copy {
                return Ok((view, 0));
            }
            &mut []
        } else {
            self.source.resize(self.source.len().max(len), 0);
            let stored = &mut self.source[..len];
            source.read_into(tile.source.start, stored)?;
            stored
        };
        let bytes = usize::try_from(tile.bytes).map_err(|_| ConvertError::Overflow)?;
        let words = bytes.div_ceil(4);
        self.made.resize(self.made.len().max(words), 0);
        let stored: &[u8] = if source.hands_out_views() { view } else { stored };
        match tensor.recipe.step {
            Step::Copy => Ok((stored, 0)),
            Step::Swap { width } => {
                let made = &mut cast_slice_mut::<u32, u8>(&mut self.made)[..bytes];
                made.copy_from_slice(stored);
                reverse_each(made, usize::try_from(width).unwrap_or(1));
                Ok((made, 0))
            }
            Step::Decode { ggml_type, order } => {
                let made = &mut self.made[..words];
                let decoded = match tensor.dtype {
                    Dtype::F16 => decode_into::<f16>(ggml_type, order, stored, made, bytes),
                    Dtype::BF16 => decode_into::<bf16>(ggml_type, order, stored, made, bytes),
                    _ => decode_into::<f32>(ggml_type, order, stored, made, bytes),
                };
                let decoded = decoded.map_err(|error| ConvertError::Decode { tensor: tensor.name.clone(), error })?;
                Ok((&cast_slice(made)[..bytes], decoded.overflowed))
            }
        }
    }
}

fn decode_into<T: Target>(
    ggml_type: gguf2st_gguf::GgmlType,
    order: ByteOrder,
    stored: &[u8],
    made: &mut [u32],
    bytes: usize,
) -> Result<Decoded, gguf2st_quants::DecodeError> {
    let values = &mut cast_slice_mut::<u32, T>(made)[..bytes / size_of::<T>()];
    let decoded = decode(ggml_type, order, stored, values)?;
    if ByteOrder::NATIVE == ByteOrder::Big {
        // safetensors is little-endian everywhere.
        reverse_each(cast_slice_mut(values), size_of::<T>());
    }
    Ok(decoded)
}

/// Reverses the bytes of each number of `width` bytes.
pub(crate) fn reverse_each(bytes: &mut [u8], width: usize) {
    match width {
        2 => bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|number| number.reverse()),
        4 => bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|number| number.reverse()),
        8 => bytes.as_chunks_mut::<8>().0.iter_mut().for_each(|number| number.reverse()),
        _ => {}
    }
}
