//! One function a type, from a block to a byte a quant and a scale (and offset) for every 16 of them.

use super::super::quants::Part;
use crate::block::half;
use crate::block::iq4::{IQ4_NL, IQ4_VALUES, IQ4_XS};
use crate::block::k::{Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K, scales_and_mins};
use crate::block::legacy::{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1};
use crate::block::micro::{E2M1_DOUBLED, MXFP4};

/// The low nibbles of all bytes, then their high nibbles, each made a quant by `quant`.
#[inline(always)]
fn nibbles(bytes: &mut [u8; 32], qs: &[u8; 16], quant: impl Fn(u8) -> u8) {
    for (j, q) in qs.iter().enumerate() {
        bytes[j] = quant(q & 0x0f);
        bytes[j + 16] = quant(q >> 4);
    }
}

pub(super) fn q4_0(block: &Q4_0, part: Part<'_, 32, 2>) {
    nibbles(part.bytes, &block.qs, |q| q.wrapping_sub(8));
    *part.scales = [half(block.d); 2];
}

pub(super) fn q4_1(block: &Q4_1, part: Part<'_, 32, 2>) {
    nibbles(part.bytes, &block.qs, |q| q);
    *part.scales = [half(block.d); 2];
    *part.offsets = [half(block.m); 2];
}

/// Sets or clears bit 4 of each quant as bit *i* of `qh` says.
#[inline(always)]
fn add_fifth_bits(bytes: &mut [u8; 32], qh: [u8; 4]) {
    for (bytes, qh) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(qh) {
        for (bit, byte) in bytes.iter_mut().enumerate() {
            *byte |= (qh >> bit & 1) << 4;
        }
    }
}

pub(super) fn q5_0(block: &Q5_0, part: Part<'_, 32, 2>) {
    nibbles(part.bytes, &block.qs, |q| q);
    add_fifth_bits(part.bytes, block.qh);
    for byte in &mut *part.bytes {
        *byte = byte.wrapping_sub(16);
    }
    *part.scales = [half(block.d); 2];
}

pub(super) fn q5_1(block: &Q5_1, part: Part<'_, 32, 2>) {
    nibbles(part.bytes, &block.qs, |q| q);
    add_fifth_bits(part.bytes, block.qh);
    *part.scales = [half(block.d); 2];
    *part.offsets = [half(block.m); 2];
}

pub(super) fn q8_0(block: &Q8_0, part: Part<'_, 32, 2>) {
    *part.bytes = block.qs;
    *part.scales = [half(block.d); 2];
}

pub(super) fn q8_1(block: &Q8_1, part: Part<'_, 32, 2>) {
    *part.bytes = block.qs;
    *part.scales = [half(block.d); 2];
}

/// The quants of two bits each in 64 bytes, as Q2_K and Q3_K store them.
#[inline(always)]
fn two_bits(bytes: &mut [u8; 256], qs: &[u8; 64]) {
    for (bytes, qs) in bytes.as_chunks_mut::<128>().0.iter_mut().zip(qs.as_chunks::<32>().0) {
        for (bytes, shift) in bytes.as_chunks_mut::<32>().0.iter_mut().zip([0, 2, 4, 6]) {
            for (byte, q) in bytes.iter_mut().zip(qs) {
                *byte = q >> shift & 3;
            }
        }
    }
}

pub(super) fn q2_k(block: &Q2_K, part: Part<'_, 256, 16>) {
    let (d, minus_dmin) = (half(block.d), -half(block.dmin));
    *part.scales = block.scales.map(|scale| d * f32::from(scale & 0x0f));
    // x − min is x + (−min), in every bit.
    *part.offsets = block.scales.map(|scale| minus_dmin * f32::from(scale >> 4));
    two_bits(part.bytes, &block.qs);
}

pub(super) fn q3_k(block: &Q3_K, part: Part<'_, 256, 16>) {
    let d = half(block.d);
    *part.scales = block.scales().map(|scale| d * (f32::from(scale) - 32.0));
    two_bits(part.bytes, &block.qs);
    for (bit, bytes) in part.bytes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        for (byte, h) in bytes.iter_mut().zip(block.hmask) {
            *byte = (*byte | (h >> bit & 1) << 2).wrapping_sub(4);
        }
    }
}

/// `d × scale` and `−(dmin × min)` of Q4_K and Q5_K, each for two groups of 16.
#[inline(always)]
fn scales_and_offsets(packed: &[u8; 12], d: [u8; 2], dmin: [u8; 2]) -> [[f32; 16]; 2] {
    let (scales, mins) = scales_and_mins(packed);
    let (d, minus_dmin) = (half(d), -half(dmin));
    [
        core::array::from_fn(|i| d * f32::from(scales[i / 2])),
        core::array::from_fn(|i| minus_dmin * f32::from(mins[i / 2])),
    ]
}

/// The quants of four bits each in 128 bytes, as Q4_K and Q5_K store them.
#[inline(always)]
fn four_bits(bytes: &mut [u8; 256], qs: &[u8; 128]) {
    for (bytes, qs) in bytes.as_chunks_mut::<64>().0.iter_mut().zip(qs.as_chunks::<32>().0) {
        for (l, q) in qs.iter().enumerate() {
            bytes[l] = q & 0x0f;
            bytes[l + 32] = q >> 4;
        }
    }
}

pub(super) fn q4_k(block: &Q4_K, part: Part<'_, 256, 16>) {
    [*part.scales, *part.offsets] = scales_and_offsets(&block.scales, block.d, block.dmin);
    four_bits(part.bytes, &block.qs);
}

pub(super) fn q5_k(block: &Q5_K, part: Part<'_, 256, 16>) {
    [*part.scales, *part.offsets] = scales_and_offsets(&block.scales, block.d, block.dmin);
    four_bits(part.bytes, &block.qs);
    for (bit, bytes) in part.bytes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        for (byte, h) in bytes.iter_mut().zip(block.qh) {
            *byte |= (h >> bit & 1) << 4;
        }
    }
}

pub(super) fn q6_k(block: &Q6_K, part: Part<'_, 256, 16>) {
    let d = half(block.d);
    *part.scales = block.scales.map(|scale| d * f32::from(scale.cast_signed()));
    let parts = part.bytes.as_chunks_mut::<128>().0.iter_mut();
    for ((bytes, ql), qh) in parts.zip(block.ql.as_chunks::<64>().0).zip(block.qh.as_chunks::<32>().0) {
        for (l, h) in qh.iter().enumerate() {
            bytes[l] = (ql[l] & 0x0f | (h & 3) << 4).wrapping_sub(32);
            bytes[l + 32] = (ql[l + 32] & 0x0f | (h >> 2 & 3) << 4).wrapping_sub(32);
            bytes[l + 64] = (ql[l] >> 4 | (h >> 4 & 3) << 4).wrapping_sub(32);
            bytes[l + 96] = (ql[l + 32] >> 4 | (h >> 6) << 4).wrapping_sub(32);
        }
    }
}

pub(super) fn q8_k(block: &Q8_K, part: Part<'_, 256, 16>) {
    *part.bytes = block.qs;
    *part.scales = [f32::from_le_bytes(block.d); 16];
}

pub(super) fn iq4_nl(block: &IQ4_NL, part: Part<'_, 32, 2>) {
    nibbles(part.bytes, &block.qs, |code| IQ4_VALUES[usize::from(code)].cast_unsigned());
    *part.scales = [half(block.d); 2];
}

pub(super) fn iq4_xs(block: &IQ4_XS, part: Part<'_, 256, 16>) {
    let d = half(block.d);
    *part.scales = core::array::from_fn(|i| d * f32::from(block.scale(i / 2)));
    for (bytes, qs) in part.bytes.as_chunks_mut::<32>().0.iter_mut().zip(block.qs.as_chunks().0) {
        nibbles(bytes, qs, |code| IQ4_VALUES[usize::from(code)].cast_unsigned());
    }
}

pub(super) fn mxfp4(block: &MXFP4, part: Part<'_, 32, 2>) {
    nibbles(part.bytes, &block.qs, |code| E2M1_DOUBLED[usize::from(code)].cast_unsigned());
    *part.scales = [block.half_scale(); 2];
}
