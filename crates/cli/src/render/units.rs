//! Figures for people.

/// `268098176` as `268,098,176`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count in thousands, millions … to three or four figures: `268.1 M`, `7.24 B`; exact below 10,000.
pub(crate) fn count(number: u64) -> String {
    const NAMES: [&str; 6] = ["K", "M", "B", "T", "P", "E"];
    if number < 10_000 {
        return grouped(number);
    }
    scaled(number as f64, 1000.0, &NAMES)
}

const BINARY: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Bytes in binary units: `241.4 MiB`; exact below 10,000.
pub(crate) fn bytes(number: u64) -> String {
    if number < 10_000 {
        return format!("{} {}", grouped(number), if number == 1 { "byte" } else { "bytes" });
    }
    scaled(number as f64, 1024.0, &BINARY)
}

/// Bytes in the units of disks and networks, to three figures: `253 MB`; exact below 10,000.
pub(crate) fn decimal(number: u64) -> String {
    if number < 10_000 {
        return bytes(number);
    }
    let mut value = number as f64;
    let mut name = "";
    for larger in ["KB", "MB", "GB", "TB", "PB", "EB"] {
        // What would be shown as 1000 is shown as 1.00 of the next unit.
        if value < 999.5 {
            break;
        }
        (value, name) = (value / 1000.0, larger);
    }
    let decimals = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {name}")
}

/// Bytes a second: `241.4 MiB/s`.
pub(crate) fn rate(number: f64) -> String {
    match number {
        // Nothing in no time.
        _ if !number.is_finite() => "? bytes/s".into(),
        ..9_999.5 => format!("{number:.0} bytes/s"),
        _ => format!("{}/s", scaled(number, 1024.0, &BINARY)),
    }
}

fn scaled(mut value: f64, base: f64, names: &[&str]) -> String {
    let mut name = "";
    for larger in names {
        // What would be shown as 1000.0 is shown as 1.00 of the next unit.
        if value < base - 0.05 {
            break;
        }
        (value, name) = (value / base, larger);
    }
    let decimals = if value < 9.995 { 2 } else { 1 };
    format!("{value:.decimals$} {name}")
}

/// A part of a whole in percent, to a tenth.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0%".into();
    }
    let percent = part as f64 * 100.0 / whole as f64;
    if part > 0 && percent < 0.05 { "<0.1%".into() } else { format!("{percent:.1}%") }
}

/// A float to four figures: `0.01234`, `-1.5`, `2.500e-7`; whole numbers below a million as they are.
pub(crate) fn short(number: f64) -> String {
    let size = number.abs();
    if size < 1e6 && number.fract() == 0.0 {
        // Not `-0`.
        return format!("{}", number + 0.0);
    }
    if !(1e-3..1e6).contains(&size) {
        return format!("{number:.3e}");
    }
    let decimals = match size {
        1000.0.. => 0,
        100.0.. => 1,
        10.0.. => 2,
        1.0.. => 3,
        0.1.. => 4,
        0.01.. => 5,
        _ => 6,
    };
    format!("{number:.decimals$}")
}

/// `1 tensor`, `2 tensors`.
pub(crate) fn plural(number: usize, one: &str) -> String {
    format!("{} {one}{}", grouped(number as u64), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(count(9_999), "9,999");
        assert_eq!(count(268_098_176), "268.1 M");
        assert_eq!(count(7_241_732_096), "7.24 B");
        assert_eq!(count(999_999_999), "1.00 B");
        assert_eq!(count(u64::MAX), "18.4 E");
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(288), "288 bytes");
        assert_eq!(bytes(253_113_024), "241.4 MiB");
        assert_eq!(bytes(1_048_576), "1.00 MiB");
        assert_eq!(decimal(9_999), "9,999 bytes");
        assert_eq!(decimal(10_000), "10.0 KB");
        assert_eq!(decimal(253_113_024), "253 MB");
        assert_eq!(decimal(999_600_000), "1.00 GB");
        assert_eq!(decimal(u64::MAX), "18.4 EB");
        assert_eq!(rate(0.4), "0 bytes/s");
        assert_eq!(rate(1048576.0), "1.00 MiB/s");
        assert_eq!(rate(f64::NAN), "? bytes/s");
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(1, 1_000_000), "<0.1%");
        assert_eq!(percent(0, 0), "0%");
        assert_eq!(plural(1, "tensor"), "1 tensor");
    }

    #[test]
    fn floats() {
        for (number, shown) in [
            (0.0, "0"),
            (-0.0, "0"),
            (-3.0, "-3"),
            (65504.0, "65504"),
            (1e6, "1.000e6"),
            (0.123_456, "0.1235"),
            (-0.001_234_56, "-0.001235"),
            (0.000_999, "9.990e-4"),
            (12.345_6, "12.35"),
            (123_456.7, "123457"),
            (f64::MIN_POSITIVE, "2.225e-308"),
        ] {
            assert_eq!(short(number), shown);
        }
    }
}
