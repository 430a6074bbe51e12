//! Amounts as they are typed: bytes with a unit, lists of numbers.

/// Bytes of each unit: those of disks and networks are powers of 1000, those of memory powers of 1024.
const UNITS: [(&str, u64); 10] = [
    ("", 1),
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// `5GB`, `256MiB`, `1000000`: bytes, at least one.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = unit.trim_start();
    let Some((_, factor)) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) else {
        return Err("a whole number of bytes is expected, or of KB, MB, GB, TB, KiB, MiB, GiB, TiB".into());
    };
    let number: u64 = match digits.parse() {
        Ok(number) => number,
        Err(_) if digits.is_empty() => return Err("a number is expected, as in 5GB".into()),
        Err(_) => return Err("too large".into()),
    };
    match number.checked_mul(*factor) {
        None => Err("too large".into()),
        Some(0) => Err("at least one byte is expected".into()),
        Some(bytes) => Ok(bytes),
    }
}

/// The numbers of some shards, sorted, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbers(pub(crate) Vec<usize>);

/// No plan has more shards: there are five digits in their names.
const MOST: usize = 99_999;

/// `3,5-7`: numbers from one, and runs of them.
pub(crate) fn numbers(text: &str) -> Result<Numbers, String> {
    let number = |text: &str| {
        let number = text.trim().parse().ok().filter(|number| (1..=MOST).contains(number));
        number.ok_or_else(|| format!("numbers from 1 to {MOST} and runs of them are expected, as in 3,5-7"))
    };
    let mut all = Vec::new();
    for item in text.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(format!("{first}-{last} runs backwards"));
        }
        all.extend(first..=last);
    }
    all.sort_unstable();
    all.dedup();
    Ok(Numbers(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        for (text, expected) in [
            ("1", 1),
            ("17B", 17),
            ("5GB", 5_000_000_000),
            ("5 gb", 5_000_000_000),
            ("2KB", 2_000),
            ("3MB", 3_000_000),
            ("1TB", 1_000_000_000_000),
            ("256MiB", 256 << 20),
            ("1KiB", 1 << 10),
            ("4GiB", 4 << 30),
            ("1TiB", 1 << 40),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "GB", "0", "0GB", "-1", "1.5GB", "5G", "5 GB x", "18446744073709551616", "18446745TB", "５GB"]
        {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lists() {
        assert_eq!(numbers("3,5-7"), Ok(Numbers(vec![3, 5, 6, 7])));
        assert_eq!(numbers("7-7, 1 ,5-6,6"), Ok(Numbers(vec![1, 5, 6, 7])));
        for text in ["", "0", "3,", "7-5", "-3", "3-", "1-100000", "99999999999999999999", "a"] {
            assert!(numbers(text).is_err(), "{text}");
        }
    }
}
