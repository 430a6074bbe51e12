//! The public functions: checks, then a kernel, then a count of what did not fit.

use gguf2st_gguf::{ByteOrder, Family, GgmlType};

use crate::block;
use crate::byte_order::Swap;
use crate::error::DecodeError;
use crate::kernels::{Kernel, Kernels};
use crate::target::{Kind, Target};

/// How many values are decoded at a time where more than one pass over them is needed: few enough
/// for the first-level cache, and whole blocks of every type.
const PIECE: usize = 2048;

/// The bytes of the largest piece, one of F64.
const PIECE_BYTES: usize = PIECE * 8;

/// What became of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decoded {
    /// Finite values that became infinite because the target's range is too small for them: 65,520 or
    /// more in size for f16, and beyond the largest float for F64 to f32 and F32 to bf16.
    pub overflowed: u64,
}

/// Decodes whole blocks to floats.
///
/// `blocks` are consecutive blocks as they stand in a container of byte order `order`; `out` has
/// exactly as many slots as the blocks have values. float32 results equal those of ggml's C reference
/// bit for bit, but for the payload and sign of NaNs; the 16-bit targets are these, rounded once to
/// nearest even. F64 is rounded once, from float64.
///
/// ```
/// use gguf2st_quants::{ByteOrder, GgmlType, bf16, decode};
///
/// // One block of Q8_0: a scale of 0.5, then the quants 0 to 31.
/// let mut block = half::f16::from_f32(0.5).to_le_bytes().to_vec();
/// block.extend(0..32);
///
/// let mut values = [bf16::ZERO; 32];
/// let decoded = decode(GgmlType::Q8_0, ByteOrder::Little, &block, &mut values)?;
/// assert_eq!(values[31].to_f32(), 15.5);
/// assert_eq!(decoded.overflowed, 0);
/// # Ok::<(), gguf2st_quants::DecodeError>(())
/// ```
///
/// # Errors
///
/// Those of [`can_decode`]; and if `blocks` is not a whole number of blocks, or `out` has another
/// length than their values. `out` is untouched then.
pub fn decode<T: Target>(
    ggml_type: GgmlType,
    order: ByteOrder,
    blocks: &[u8],
    out: &mut [T],
) -> Result<Decoded, DecodeError> {
    decode_with(Kernels::current()?, ggml_type, order, blocks, out)
}

/// [`decode`] with a given set of kernels, to compare sets or to hunt for a fault in one.
///
/// # Errors
///
/// Those of [`decode`].
pub fn decode_with<T: Target>(
    kernels: Kernels,
    ggml_type: GgmlType,
    order: ByteOrder,
    blocks: &[u8],
    out: &mut [T],
) -> Result<Decoded, DecodeError> {
    let (block_values, block_bytes) = block_of(ggml_type)?;
    let swap = swap_of(ggml_type, order)?;
    let kernel = kernels.kernel::<T>(ggml_type).ok_or(DecodeError::UnknownType { ggml_type })?;

    if !blocks.len().is_multiple_of(block_bytes) {
        return Err(DecodeError::LengthNotWholeBlocks { ggml_type, bytes: blocks.len(), block_bytes });
    }
    let count = blocks.len() / block_bytes;
    if count.checked_mul(block_values) != Some(out.len()) {
        let values = count.saturating_mul(block_values);
        return Err(DecodeError::OutputLength { ggml_type, blocks: count, values, slots: out.len() });
    }

    if swap.is_none() && !may_overflow(ggml_type, T::KIND) {
        kernel(blocks, out);
        return Ok(Decoded::default());
    }
    let mut decoded = Decoded::default();
    let mut swapped = [0; PIECE_BYTES];
    let piece_bytes = PIECE / block_values * block_bytes;
    for (blocks, out) in blocks.chunks(piece_bytes).zip(out.chunks_mut(PIECE)) {
        let blocks = match swap {
            None => blocks,
            Some(swap) => {
                let swapped = &mut swapped[..blocks.len()];
                swapped.copy_from_slice(blocks);
                swap.apply(swapped, block_bytes);
                swapped
            }
        };
        decode_piece(kernel, ggml_type, blocks, out, &mut decoded);
    }
    Ok(decoded)
}

/// Whether [`decode`] knows how to decode a type, so that a plan can be refused before a byte moves.
///
/// ```
/// use gguf2st_quants::{ByteOrder, DecodeError, GgmlType, can_decode};
///
/// assert_eq!(can_decode(GgmlType::Q5_K, ByteOrder::Little), Ok(()));
/// assert_eq!(
///     can_decode(GgmlType::Q5_K, ByteOrder::Big),
///     Err(DecodeError::NoBigEndianLayout { ggml_type: GgmlType::Q5_K }),
/// );
/// assert_eq!(
///     can_decode(GgmlType(77), ByteOrder::Little).unwrap_err().to_string(),
///     "unknown(77) has no decoder here: its values cannot be decoded",
/// );
/// ```
///
/// # Errors
///
/// If the type is unknown, removed from ggml or one of integers, if it has no layout in this byte
/// order, or if `GGUF2ST_KERNELS` names kernels that cannot run here.
pub fn can_decode(ggml_type: GgmlType, order: ByteOrder) -> Result<(), DecodeError> {
    Kernels::current()?;
    block_of(ggml_type)?;
    swap_of(ggml_type, order)?;
    Ok(())
}

/// Values and bytes of a block of a type that has a decoder.
fn block_of(ggml_type: GgmlType) -> Result<(usize, usize), DecodeError> {
    if ggml_type.is_removed() {
        return Err(DecodeError::RemovedType { ggml_type });
    }
    if ggml_type.family() == Some(Family::Integer) {
        return Err(DecodeError::IntegerType { ggml_type });
    }
    let sizes = || {
        block::kernel::<f32>(ggml_type)?;
        let values = usize::try_from(ggml_type.block_size()?).ok()?;
        Some((values, usize::try_from(ggml_type.type_size()?).ok()?))
    };
    sizes().ok_or(DecodeError::UnknownType { ggml_type })
}

fn swap_of(ggml_type: GgmlType, order: ByteOrder) -> Result<Option<Swap>, DecodeError> {
    match order {
        ByteOrder::Little => Ok(None),
        ByteOrder::Big => match Swap::of(ggml_type) {
            Some(swap) => Ok(Some(swap)),
            None => Err(DecodeError::NoBigEndianLayout { ggml_type }),
        },
    }
}

/// Whether a finite value can become infinite in the target.
fn may_overflow(ggml_type: GgmlType, target: Kind) -> bool {
    match target {
        Kind::F32 => ggml_type == GgmlType::F64,
        // The others have f16 scales, so their values are far below, or values with few digits, which
        // are not rounded.
        Kind::Bf16 => matches!(ggml_type, GgmlType::F32 | GgmlType::F64 | GgmlType::Q8_K),
        Kind::F16 => ggml_type != GgmlType::F16,
    }
}

/// Decodes and counts. Infinite values are rare, so only a piece with some is looked at again.
fn decode_piece<T: Target>(
    kernel: Kernel<T>,
    ggml_type: GgmlType,
    blocks: &[u8],
    out: &mut [T],
    decoded: &mut Decoded,
) {
    kernel(blocks, out);
    if !may_overflow(ggml_type, T::KIND) || !T::any_infinite(out) {
        return;
    }
    let mut count = |index: usize, was_finite: bool| {
        decoded.overflowed += u64::from(was_finite && out[index].is_infinite());
    };
    if ggml_type == GgmlType::F64 {
        for (index, bytes) in blocks.as_chunks().0.iter().enumerate() {
            count(index, f64::from_le_bytes(*bytes).is_finite());
        }
    } else if let Some(widest) = block::kernel::<f32>(ggml_type) {
        let mut values = [0.0; PIECE];
        let values = &mut values[..out.len()];
        widest(blocks, values);
        for (index, value) in values.iter().enumerate() {
            count(index, value.is_finite());
        }
    }
}
