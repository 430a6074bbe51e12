//! The unit of work: a run of whole units (blocks, numbers, bytes) of one output tensor, sized to stay in
//! cache; and loads, the runs of tiles whose bytes are fetched at once.

use bytemuck::{cast_slice, cast_slice_mut};
use gguf2st_gguf::ByteOrder;
use gguf2st_quants::{Decoded, Target, bf16, decode, f16};

use crate::dtype::Dtype;
use crate::error::ConvertError;
use crate::plan::{Piece, PlannedTensor, Shard, Step};

/// Bytes of output a tile: input and output of one stay in a core's second-level cache.
pub(crate) const TILE: u64 = 256 << 10;

/// Where a tile's bytes come from and go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tile {
    /// The bytes that it is made of.
    pub(crate) source: Piece,
    /// Where its first byte goes, from the tensor's start.
    pub(crate) offset: u64,
    /// Bytes that it becomes.
    pub(crate) bytes: u64,
}

/// What is fetched at once: some whole tiles of one piece of one tensor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Load {
    /// Position of the tensor in its shard.
    pub(crate) tensor: usize,
    /// Position of its first tile among all of the shard.
    pub(crate) first_tile: usize,
    pub(crate) run: Tile,
}

/// Units that a tile has at the most.
fn tile_units((_, to): (u64, u64)) -> u64 {
    (TILE / to).max(1)
}

/// Cuts a run into shorter ones of `units` units at the most: in order, and together its bytes, each once.
fn cut(run: Tile, units: u64, (from, to): (u64, u64)) -> impl Iterator<Item = Tile> {
    let total = run.source.bytes() / from;
    (0..total.div_ceil(units)).map(move |position| {
        let first = position * units;
        let count = units.min(total - first);
        let start = run.source.range.start + first * from;
        Tile {
            source: Piece { part: run.source.part, range: start..start + count * from },
            offset: run.offset + first * to,
            bytes: count * to,
        }
    })
}

/// A tensor's pieces, each as one run, in order.
fn runs(tensor: &PlannedTensor) -> impl Iterator<Item = Tile> + use<'_> {
    let (from, to) = tensor.recipe.step.unit(tensor.dtype);
    let mut end = 0;
    tensor.recipe.pieces.iter().map(move |piece| {
        let (offset, bytes) = (end, piece.bytes() / from * to);
        end += bytes;
        Tile { source: piece.clone(), offset, bytes }
    })
}

/// The tiles of one tensor.
pub(crate) fn tiles(tensor: &PlannedTensor) -> impl Iterator<Item = Tile> + use<'_> {
    let unit = tensor.recipe.step.unit(tensor.dtype);
    runs(tensor).flat_map(move |run| cut(run, tile_units(unit), unit))
}

/// The loads of a shard, in the order of its bytes, of about `bytes` of source each. The tiles are the same
/// whatever the size of the loads.
pub(crate) fn loads(shard: &Shard, bytes: u64) -> impl Iterator<Item = Load> + use<'_> {
    let mut first_tile = 0;
    let runs = shard.tensors.iter().enumerate().flat_map(move |(position, tensor)| {
        let unit = tensor.recipe.step.unit(tensor.dtype);
        let tiles = (bytes / (tile_units(unit) * unit.0)).max(1);
        runs(tensor).flat_map(move |run| cut(run, tiles * tile_units(unit), unit)).map(move |run| (position, run))
    });
    runs.map(move |(tensor, run)| {
        let load = Load { tensor, first_tile, run };
        first_tile += load.tiles(&shard.tensors[tensor]).count();
        load
    })
}

impl Load {
    /// Its tiles, in order.
    pub(crate) fn tiles(&self, tensor: &PlannedTensor) -> impl Iterator<Item = Tile> + use<> {
        let unit = tensor.recipe.step.unit(tensor.dtype);
        cut(self.run.clone(), tile_units(unit), unit)
    }
}

/// Makes tiles, one after the other, in a buffer of its own.
#[derive(Debug, Default)]
pub(crate) struct Maker {
    /// Words, so that floats of any dtype lie aligned in it.
    made: Vec<u32>,
}

impl Maker {
    /// The bytes of a tile as they stand in the output, made of those in the source, and how many finite values
    /// became infinite.
    pub(crate) fn make<'m>(
        &'m mut self,
        tensor: &PlannedTensor,
        tile: &Tile,
        stored: &'m [u8],
    ) -> Result<(&'m [u8], u64), ConvertError> {
        let bytes = usize::try_from(tile.bytes).map_err(|_| ConvertError::Overflow)?;
        let words = bytes.div_ceil(4);
        self.made.resize(self.made.len().max(words), 0);
        let made = &mut self.made[..words];
        match tensor.recipe.step {
            Step::Copy => Ok((stored, 0)),
            Step::Swap { width } => {
                let made = &mut cast_slice_mut::<u32, u8>(made)[..bytes];
                made.copy_from_slice(stored);
                reverse_each(made, usize::try_from(width).unwrap_or(1));
                Ok((made, 0))
            }
            Step::Decode { ggml_type, order } => {
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
