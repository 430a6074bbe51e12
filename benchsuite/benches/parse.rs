//! Opening, parsing and indexing a container: this parser from a mapping and from a buffer, beside a bare
//! walk over the length prefixes (the floor) and beside other parsers, all in one run.
//!
//! ```text
//! cargo xtask sample && cd benchsuite && cargo bench --bench parse
//! ```

use std::fs::File;
use std::hint::black_box;
use std::io::{BufReader, Cursor};
use std::path::Path;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use gguf2st_gguf::parse_gguf;
use gguf2st_source::MmapSource;

fn opening(criterion: &mut Criterion) {
    for path in benchsuite::models() {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut group = criterion.benchmark_group(format!("open/{name}"));
        group.sample_size(20);
        let mut bench = |label: &str, open: &dyn Fn(&Path)| {
            group.bench_with_input(BenchmarkId::from_parameter(label), &path, |bencher, path| {
                bencher.iter(|| open(black_box(path)));
            });
        };
        // Each opens the file anew, so that page faults of a mapping and copies of a read count.
        bench("floor: bare walk, mapping", &|path| {
            let mapping = MmapSource::open(path).unwrap();
            black_box(benchsuite::walk(mapping.as_slice()));
        });
        bench("gguf2st, mapping", &|path| {
            let mapping = MmapSource::open(path).unwrap();
            let bytes = mapping.as_slice();
            black_box(parse_gguf(bytes, bytes.len() as u64).unwrap());
        });
        bench("ggus, mapping", &|path| {
            let mapping = MmapSource::open(path).unwrap();
            black_box(ggus::GGuf::new(mapping.as_slice()).unwrap());
        });
        bench("candle-core, BufReader", &|path| {
            let mut reader = BufReader::new(File::open(path).unwrap());
            black_box(candle_core::quantized::gguf_file::Content::read(&mut reader).unwrap());
        });
        bench("candle-core, mapping", &|path| {
            let mapping = MmapSource::open(path).unwrap();
            let mut reader = Cursor::new(mapping.as_slice());
            black_box(candle_core::quantized::gguf_file::Content::read(&mut reader).unwrap());
        });
        // In memory already: the parsers alone.
        let buffer = std::fs::read(&path).unwrap();
        bench("floor: bare walk, buffer", &|_| {
            black_box(benchsuite::walk(black_box(&buffer)));
        });
        bench("gguf2st, buffer", &|_| {
            black_box(parse_gguf(black_box(&buffer[..]), buffer.len() as u64).unwrap());
        });
        bench("ggus, buffer", &|_| {
            black_box(ggus::GGuf::new(black_box(&buffer)).unwrap());
        });
        group.finish();
    }
}

criterion_group!(benches, opening);
criterion_main!(benches);
