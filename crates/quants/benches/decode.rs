//! Every type to f32 and bf16 into a tile that stays in cache, in bytes of output per second, beside a
//! copy of as many bytes. `GGUF2ST_KERNELS` chooses the kernels.

use std::hint::black_box;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use gguf2st_quants::{ByteOrder, GgmlType, Kernels, Target, bf16, can_decode, decode, f16};

/// Bytes of output: as much as the converter decodes at a time.
const TILE: usize = 256 << 10;

/// Bytes without a pattern (xorshift); but floats and scales are such as a tensor would hold.
fn blocks(ggml_type: GgmlType, values: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "any value near zero will do")]
    let mut float = || (next() >> 40) as f32 / (1 << 24) as f32 - 0.5;
    match ggml_type {
        GgmlType::F32 => (0..values).flat_map(|_| float().to_le_bytes()).collect(),
        GgmlType::F64 => (0..values).flat_map(|_| f64::from(float()).to_le_bytes()).collect(),
        GgmlType::F16 => (0..values).flat_map(|_| f16::from_f32(float()).to_le_bytes()).collect(),
        GgmlType::BF16 => (0..values).flat_map(|_| bf16::from_f32(float()).to_le_bytes()).collect(),
        _ => {
            let block_values = ggml_type.block_size().and_then(|n| usize::try_from(n).ok()).expect("a size");
            let block_bytes = ggml_type.type_size().and_then(|n| usize::try_from(n).ok()).expect("a size");
            // Whatever two bytes are a scale, its exponent has one bit set and one clear: an ordinary number.
            (0..values / block_values * block_bytes).map(|_| next().to_le_bytes()[3] & 0xbf | 0x04).collect()
        }
    }
}

fn one_type<T: Target>(group: &mut BenchmarkGroup<'_, WallTime>, ggml_type: GgmlType, target: &str, zero: T) {
    let mut out = vec![zero; TILE / size_of::<T>()];
    let blocks = blocks(ggml_type, out.len());
    group.bench_function(format!("{ggml_type}/{target}"), |bencher| {
        bencher.iter(|| decode(ggml_type, ByteOrder::Little, black_box(&blocks), black_box(&mut out)));
    });
}

fn all(criterion: &mut Criterion) {
    let kernels = Kernels::current().expect("GGUF2ST_KERNELS names a set that runs here");
    let mut group = criterion.benchmark_group(kernels.name());
    group.throughput(Throughput::Bytes(TILE as u64));
    let source = vec![1_u8; TILE];
    let mut copy = vec![0_u8; TILE];
    group.bench_function("copy", |bencher| {
        bencher.iter(|| black_box(&mut copy).copy_from_slice(black_box(&source)));
    });
    for ggml_type in GgmlType::all().filter(|t| can_decode(*t, ByteOrder::Little).is_ok()) {
        one_type(&mut group, ggml_type, "f32", 0.0_f32);
        one_type(&mut group, ggml_type, "bf16", bf16::ZERO);
    }
    group.finish();
}

criterion_group! {
    name = decode_types;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(800))
        .sample_size(20);
    targets = all
}
criterion_main!(decode_types);
