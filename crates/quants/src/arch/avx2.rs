//! x86-64 with AVX2, F16C and BMI2: Haswell, Zen and newer.

use gguf2st_gguf::GgmlType;

use crate::kernels::Kernel;
use crate::target::Target;

/// Proof that the machine has the instructions: there is no other way to make one than to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        let found =
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") && is_x86_feature_detected!("bmi2");
        found.then_some(Self(()))
    }

    pub(crate) fn kernel<T: Target>(self, _ggml_type: GgmlType) -> Option<Kernel<T>> {
        None
    }
}
