//! Names that may have been meant.

use crate::query::Query;

/// Names that are given at the most.
const MOST: usize = 3;

/// The names most like `wanted`: those that contain it in any case, in the order given, then those that are a
/// few letters away.
pub(crate) fn close(wanted: &str, names: &[&[u8]]) -> Vec<String> {
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let query = Query::new(wanted);
    // Every name contains nothing.
    let containing = names.iter().filter(|name| !wanted.is_empty() && query.matches(name));
    let mut found: Vec<String> = containing.take(MOST).map(|name| text(name)).collect();
    if found.len() < MOST {
        let limit = wanted.chars().count() / 4;
        // A letter takes four bytes at the most.
        let near = names.iter().filter(|name| name.len().abs_diff(wanted.len()) <= limit * 4 && !query.matches(name));
        let near = near.map(|name| (strsim::levenshtein(wanted, &text(name)), text(name)));
        let mut near: Vec<_> = near.filter(|(edits, _)| *edits <= limit).collect();
        near.sort_by_key(|(edits, _)| *edits);
        found.extend(near.into_iter().map(|(_, name)| name).take(MOST - found.len()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] =
        ["token_embd.weight", "blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.1.attn_q.weight", "output.weight"];

    fn of(wanted: &str) -> Vec<String> {
        close(wanted, &NAMES.map(str::as_bytes))
    }

    #[test]
    fn names_that_contain_it_come_first() {
        assert_eq!(of("ATTN_Q"), ["blk.0.attn_q.weight", "blk.1.attn_q.weight"]);
        assert_eq!(of("weight").len(), MOST);
    }

    #[test]
    fn then_names_that_are_a_few_letters_away() {
        assert_eq!(of("token_emb.weight"), ["token_embd.weight"]);
        assert_eq!(of("blk.0.attn_v.weight")[..2], ["blk.0.attn_q.weight", "blk.0.attn_k.weight"]);
        assert_eq!(of("lm_head"), [""; 0]);
        assert_eq!(of(""), [""; 0]);
    }
}
