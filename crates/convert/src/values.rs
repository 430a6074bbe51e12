//! The values themselves: statistics of every tensor, and the first few of one.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use bstr::{BStr, BString};
use gguf2st_gguf::{Family, TensorInfo};
use gguf2st_quants::can_decode;

use crate::cores::on_all_cores;
use crate::dtype::Dtype;
use crate::error::ConvertError;
use crate::model::{Model, Reader};
use crate::plan::{Choice, Plan, PlannedTensor};
use crate::tile::{Maker, tiles};

/// What is to be known of a tensor's values without looking at them all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// How many values there are.
    pub values: u64,
    /// How many are NaN.
    pub nan: u64,
    /// How many are infinite.
    pub infinite: u64,
    /// How many are zero, of either sign.
    pub zeros: u64,
    /// The smallest finite value; `None` where none is finite, as for the three below.
    pub min: Option<f64>,
    /// The largest finite value.
    pub max: Option<f64>,
    /// The mean of the finite values.
    pub mean: Option<f64>,
    /// The standard deviation of the finite values, of all and not of a sample; `None` too where their squares
    /// overflow.
    pub std: Option<f64>,
}

/// One value of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Number {
    /// Of an integer tensor.
    Integer(i64),
    /// Of a float or quantised tensor.
    Float(f32),
    /// Of an F64 tensor.
    Double(f64),
}

impl Model {
    /// The statistics of each tensor, in file order; `None` for those whose values have no decoder in this
    /// byte order. `progress` is told of the bytes of values looked at since it was last told.
    ///
    /// # Errors
    ///
    /// As for a conversion.
    pub fn stats(
        &self,
        threads: Option<NonZeroUsize>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<Option<Stats>>, ConvertError> {
        let plan = self.plan_of_values()?;
        let positions: HashMap<BString, usize> =
            self.tensors().enumerate().map(|(position, (_, tensor))| (BString::from(tensor.name), position)).collect();
        let gathered = Mutex::new(vec![None; positions.len()]);
        // A tensor a job: the sums of one are added in one order, so that every run gives the same figures.
        let done = on_all_cores(threads, plan.tensors(), |worker: &mut Worker, tensor| {
            let mut sums = Sums::default();
            if has_values(tensor) {
                each_tile(self, worker, tensor, &mut |bytes| {
                    sums.add_all(tensor.dtype, bytes);
                    progress(bytes.len() as u64);
                    true
                })?;
                // Absent only where a mapping was changed meanwhile, which is told below.
                if let Some(position) = positions.get(BStr::new(&tensor.name)) {
                    gathered.lock().unwrap_or_else(PoisonError::into_inner)[*position] = Some(sums.stats());
                }
            }
            Ok(())
        });
        self.intact()?;
        done?;
        Ok(gathered.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The bytes of values that [`stats`](Self::stats) looks at: for progress.
    ///
    /// # Errors
    ///
    /// As for a plan.
    pub fn stats_bytes(&self) -> Result<u64, ConvertError> {
        Ok(self.plan_of_values()?.bytes())
    }

    /// The first values of a tensor in row-major order, `count` at the most; `None` where there is no tensor
    /// of that name.
    ///
    /// # Errors
    ///
    /// [`ConvertError::Decode`] where its values have no decoder; else as for a conversion.
    pub fn first_values(&self, name: &str, count: usize) -> Result<Option<Vec<Number>>, ConvertError> {
        let plan = self.plan_of_values()?;
        let Some(tensor) = plan.tensors().find(|tensor| tensor.name == name) else { return Ok(None) };
        let info = self.tensors().map(|(_, info)| info).find(|info| info.name == name);
        if let Some(info) = info.filter(|_| !has_values(tensor)) {
            can_decode(info.ggml_type, self.file().byte_order())
                .map_err(|error| ConvertError::Decode { tensor: name.to_owned(), error })?;
        }
        let mut values = Vec::new();
        let done = each_tile(self, &mut Worker::default(), tensor, &mut |bytes| {
            values.extend(numbers(tensor.dtype, bytes).take(count - values.len()));
            values.len() < count
        });
        self.intact()?;
        done?;
        Ok(Some(values))
    }

    /// Floats and quantised values as F32, the rest as it is stored; what has no decoder stays blocks.
    fn plan_of_values(&self) -> Result<Plan, ConvertError> {
        let order = self.file().byte_order();
        let choose = |tensor: &TensorInfo<'_>, _: &str| match tensor.ggml_type.family() {
            Some(Family::Float | Family::Quantized)
                if Dtype::of_plain(tensor.ggml_type) != Some(Dtype::F64)
                    && can_decode(tensor.ggml_type, order).is_ok() =>
            {
                Choice::Floats(Dtype::F32)
            }
            _ => Choice::AsStored,
        };
        self.plan_by(false, None, choose)
    }
}

/// Whether a planned tensor holds values: one of blocks holds bytes.
fn has_values(tensor: &PlannedTensor) -> bool {
    tensor.dtype != Dtype::U8
}

#[derive(Default)]
struct Worker {
    reader: Reader,
    maker: Maker,
}

/// Makes a tensor's tiles in order and shows each, until `see` has seen enough.
fn each_tile(
    model: &Model,
    worker: &mut Worker,
    tensor: &PlannedTensor,
    see: &mut dyn FnMut(&[u8]) -> bool,
) -> Result<(), ConvertError> {
    for tile in tiles(tensor) {
        let stored = worker.reader.read(model, &tile.source)?;
        let (bytes, _) = worker.maker.make(tensor, &tile, stored)?;
        if !see(bytes) {
            break;
        }
        model.parts()[tile.source.part].source().drop_range(tile.source.range);
    }
    Ok(())
}

/// The numbers in a tile's bytes, which are little-endian.
fn numbers(dtype: Dtype, bytes: &[u8]) -> Box<dyn Iterator<Item = Number> + '_> {
    fn each<const N: usize>(bytes: &[u8], number: fn([u8; N]) -> Number) -> Box<dyn Iterator<Item = Number> + '_> {
        Box::new(bytes.as_chunks::<N>().0.iter().map(move |raw| number(*raw)))
    }
    match dtype {
        Dtype::F32 => each(bytes, |raw| Number::Float(f32::from_le_bytes(raw))),
        Dtype::F64 => each(bytes, |raw| Number::Double(f64::from_le_bytes(raw))),
        Dtype::I8 => each(bytes, |raw| Number::Integer(i8::from_le_bytes(raw).into())),
        Dtype::I16 => each(bytes, |raw| Number::Integer(i16::from_le_bytes(raw).into())),
        Dtype::I32 => each(bytes, |raw| Number::Integer(i32::from_le_bytes(raw).into())),
        Dtype::I64 => each(bytes, |raw| Number::Integer(i64::from_le_bytes(raw))),
        Dtype::U8 | Dtype::F16 | Dtype::BF16 => Box::new(std::iter::empty()),
    }
}

/// Running sums, merged tile by tile (Chan's formula), each about a value near its mean: no digits are lost
/// where the mean is large.
#[derive(Default)]
struct Sums {
    stats: Stats,
    finite: f64,
    mean: f64,
    /// Squared deviations from the mean, summed.
    squares: f64,
}

impl Sums {
    fn add_all(&mut self, dtype: Dtype, bytes: &[u8]) {
        // The usual case without a call a value.
        if dtype == Dtype::F32 {
            self.add(bytes.as_chunks::<4>().0.iter().map(|raw| f64::from(f32::from_le_bytes(*raw))));
        } else {
            self.add(numbers(dtype, bytes).map(|number| match number {
                #[allow(clippy::cast_precision_loss, reason = "statistics of integers are floats")]
                Number::Integer(value) => value as f64,
                Number::Float(value) => value.into(),
                Number::Double(value) => value,
            }));
        }
    }

    fn add(&mut self, values: impl Iterator<Item = f64>) {
        let stats = &mut self.stats;
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        let mut about = (self.finite > 0.0).then_some(self.mean);
        let (mut min, mut max) = (stats.min.unwrap_or(f64::INFINITY), stats.max.unwrap_or(f64::NEG_INFINITY));
        for value in values {
            stats.values += 1;
            if !value.is_finite() {
                *(if value.is_nan() { &mut stats.nan } else { &mut stats.infinite }) += 1;
                continue;
            }
            stats.zeros += u64::from(value == 0.0);
            (min, max) = (min.min(value), max.max(value));
            let deviation = value - *about.get_or_insert(value);
            count += 1.0;
            sum += deviation;
            squares += deviation * deviation;
        }
        if count == 0.0 {
            return;
        }
        (stats.min, stats.max) = (Some(min), Some(max));
        let mean = about.unwrap_or_default() + sum / count;
        let apart = mean - self.mean;
        let all = self.finite + count;
        self.squares += squares - sum * sum / count + apart * apart * self.finite * count / all;
        self.mean += apart * count / all;
        self.finite = all;
    }

    fn stats(self) -> Stats {
        let any = self.finite > 0.0;
        Stats {
            mean: any.then_some(self.mean),
            // Squares of values beyond 1e154 overflow: then it is not known, rather than wrong.
            std: any.then(|| (self.squares / self.finite).sqrt()).filter(|std| std.is_finite()),
            ..self.stats
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tiles: &[&[f64]]) -> Stats {
        let mut sums = Sums::default();
        for tile in tiles {
            sums.add(tile.iter().copied());
        }
        sums.stats()
    }

    #[test]
    fn sums_do_not_depend_on_tiles_and_keep_digits_about_a_large_mean() {
        let stats = of(&[&[1e9 + 4.0, 1e9 + 7.0], &[1e9 + 13.0], &[], &[1e9 + 16.0]]);
        assert_eq!((stats.mean, stats.std), (Some(1e9 + 10.0), Some(22.5_f64.sqrt())));
        assert_eq!((stats.min, stats.max, stats.values), (Some(1e9 + 4.0), Some(1e9 + 16.0), 4));
    }

    #[test]
    fn what_is_not_finite_is_counted_and_left_out() {
        let stats = of(&[&[f64::NAN, 0.0, -0.0, f64::INFINITY], &[f64::NEG_INFINITY, 6.0]]);
        assert_eq!((stats.values, stats.nan, stats.infinite, stats.zeros), (6, 1, 2, 2));
        assert_eq!((stats.min, stats.max, stats.mean), (Some(-0.0), Some(6.0), Some(2.0)));
        assert_eq!(of(&[&[f64::NAN]]).mean, None);
        assert_eq!(of(&[]), Stats::default());
        assert_eq!(of(&[&[0.1, -1e300]]).std, None);
    }
}
