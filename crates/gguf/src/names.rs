//! Names, sorted: to find one, and to find one that stands twice.

/// Positions of entries, sorted by the bytes of their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Vec<usize>);

impl Names {
    /// Sorts `count` entries; the positions of two of one name, in their order, are an error.
    pub(crate) fn sort<'h>(count: usize, name: impl Fn(usize) -> &'h [u8]) -> Result<Self, (usize, usize)> {
        let mut positions: Vec<usize> = (0..count).collect();
        // Stable, so that of equal names the first in the file comes first.
        positions.sort_by(|a, b| name(*a).cmp(name(*b)));
        match positions.windows(2).find(|pair| name(pair[0]) == name(pair[1])) {
            Some(pair) => Err((pair[0], pair[1])),
            None => Ok(Self(positions)),
        }
    }

    /// The position of the entry of a name.
    pub(crate) fn find<'h>(&self, wanted: &[u8], name: impl Fn(usize) -> &'h [u8]) -> Option<usize> {
        let found = self.0.binary_search_by(|position| name(*position).cmp(wanted)).ok()?;
        self.0.get(found).copied()
    }
}
