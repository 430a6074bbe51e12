//! `decode` of gguf2st-quants as a C function for `compare.py`.

use gguf2st_quants::{ByteOrder, GgmlType, bf16, decode, f16};

/// Decodes `bytes` bytes of blocks into `values` slots of f32 (`target` 0), f16 (1) or bf16 (30), the
/// ids that ggml gives these types. Returns 0, or 1 if the lengths do not fit or there is no such type.
///
/// # Safety
///
/// `blocks` and `out` are readable and writable for that many bytes and slots, and do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gguf2st_decode(
    ggml_type: u32,
    target: u32,
    blocks: *const u8,
    bytes: usize,
    out: *mut u8,
    values: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    let blocks = unsafe { std::slice::from_raw_parts(blocks, bytes) };
    let ggml_type = GgmlType(ggml_type);
    let result = match target {
        // SAFETY: the caller's promise, here and below; `compare.py` aligns its buffers.
        0 => decode(ggml_type, ByteOrder::Little, blocks, unsafe {
            std::slice::from_raw_parts_mut(out.cast::<f32>(), values)
        }),
        // SAFETY: as above.
        1 => decode(ggml_type, ByteOrder::Little, blocks, unsafe {
            std::slice::from_raw_parts_mut(out.cast::<f16>(), values)
        }),
        // SAFETY: as above.
        30 => decode(ggml_type, ByteOrder::Little, blocks, unsafe {
            std::slice::from_raw_parts_mut(out.cast::<bf16>(), values)
        }),
        _ => return 1,
    };
    i32::from(result.is_err())
}
