//! Which implementation decodes: picked once, when the program first decodes.

use std::sync::OnceLock;

use gguf2st_gguf::GgmlType;

use crate::arch;
use crate::block;
use crate::error::DecodeError;
use crate::target::Target;

/// Decodes whole blocks into as many values as they hold.
pub(crate) type Kernel<T> = fn(&[u8], &mut [T]);

/// The environment variable that forces a set of kernels.
const VARIABLE: &str = "GGUF2ST_KERNELS";

/// A set of kernels that this machine can run.
///
/// All sets give the same bits, but for the payload and sign of NaNs; they differ in speed.
///
/// ```
/// use gguf2st_quants::Kernels;
///
/// assert_eq!(Kernels::named("plain")?.name(), "plain");
/// assert!(Kernels::named("abacus").is_err());
/// # Ok::<(), gguf2st_quants::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernels(Set);

/// A variant for an instruction set holds the proof that the machine has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2(arch::avx2::Avx2),
    #[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
    Neon,
}

impl Kernels {
    /// The set that [`decode`](crate::decode) uses: the fastest, or the one that the environment
    /// variable `GGUF2ST_KERNELS` names (`plain`, `avx2`, `neon`). It is looked at once.
    ///
    /// # Errors
    ///
    /// [`DecodeError::NoSuchKernels`] if the variable names a set that is unknown or that this
    /// machine cannot run.
    pub fn current() -> Result<Self, DecodeError> {
        static CURRENT: OnceLock<Result<Kernels, DecodeError>> = OnceLock::new();
        CURRENT
            .get_or_init(|| match std::env::var_os(VARIABLE) {
                Some(name) => Self::named(&name.to_string_lossy()),
                None => Ok(Self::fastest()),
            })
            .clone()
    }

    /// The set of this name.
    ///
    /// # Errors
    ///
    /// [`DecodeError::NoSuchKernels`] if it is unknown or this machine cannot run it.
    pub fn named(name: &str) -> Result<Self, DecodeError> {
        Self::available().into_iter().find(|kernels| kernels.name() == name).ok_or_else(|| DecodeError::NoSuchKernels {
            wanted: name.to_owned(),
            choices: Self::available().into_iter().map(Self::name).collect(),
        })
    }

    /// All sets that this machine can run, the plain one first and the fastest one last.
    #[must_use]
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut, reason = "not every architecture has more than the plain set")]
        let mut sets = vec![Self(Set::Plain)];
        #[cfg(target_arch = "x86_64")]
        sets.extend(arch::avx2::Avx2::detect().map(|avx2| Self(Set::Avx2(avx2))));
        #[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
        sets.push(Self(Set::Neon));
        sets
    }

    /// `plain`, or the name of the instruction set.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2(_) => "avx2",
            #[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
            Set::Neon => "neon",
        }
    }

    fn fastest() -> Self {
        Self::available().pop().unwrap_or(Self(Set::Plain))
    }

    /// The function for a type; types that gain nothing from an instruction set have their plain one.
    pub(crate) fn kernel<T: Target>(self, ggml_type: GgmlType) -> Option<Kernel<T>> {
        match self.0 {
            Set::Plain => block::kernel(ggml_type),
            #[cfg(target_arch = "x86_64")]
            Set::Avx2(avx2) => avx2.kernel(ggml_type).or_else(|| block::kernel(ggml_type)),
            #[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
            Set::Neon => arch::neon::kernel(ggml_type).or_else(|| block::kernel(ggml_type)),
        }
    }
}
