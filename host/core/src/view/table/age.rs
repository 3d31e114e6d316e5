//! How long ago something was, as kubectl says it.

use jiff::Timestamp;

/// The time since then, in two or three figures: `5s`, `3m20s`, `2d4h`, `1y34d`.
pub(super) fn since(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let parts = |large: i64, unit: char, small: i64, small_unit: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{small_unit}"),
    };
    match () {
        // Clocks differ a little; a time that is yet to come is none.
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => parts(minutes, 'm', seconds % 60, 's'),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => parts(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => parts(days, 'd', hours % 24, 'h'),
        () if days < 365 * 2 => format!("{days}d"),
        () if days < 365 * 8 => parts(days / 365, 'y', days % 365, 'd'),
        () => format!("{}y", days / 365),
    }
}

/// The same of a time as it is written. Absent, it is not known.
pub(super) fn since_written(then: &str, now: Timestamp) -> String {
    match then {
        "" | "null" => "<unknown>".to_owned(),
        then => then.parse().map_or_else(|_| "<invalid>".to_owned(), |then| since(then, now)),
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn an_age_is_said_as_kubectl_says_it() {
        let then: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let (minute, hour, day) = (60, 3600, 86400);
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (2 * minute, "2m"),
            (2 * minute + 5, "2m5s"),
            (10 * minute + 5, "10m"),
            (179 * minute, "179m"),
            (3 * hour, "3h"),
            (7 * hour + 59 * minute, "7h59m"),
            (8 * hour + minute, "8h"),
            (47 * hour, "47h"),
            (2 * day, "2d"),
            (7 * day + 23 * hour, "7d23h"),
            (8 * day + hour, "8d"),
            (729 * day, "729d"),
            (730 * day, "2y"),
            (764 * day, "2y34d"),
            (365 * 8 * day + 5, "8y"),
        ] {
            assert_eq!(since(then, then + SignedDuration::from_secs(seconds)), expected, "{seconds}");
        }
    }

    #[test]
    fn a_time_that_is_none_is_said_to_be_none() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(since_written("", now), "<unknown>");
        assert_eq!(since_written("yesterday", now), "<invalid>");
        assert_eq!(since_written("2026-01-02T05:03:05+02:00", now), "60s");
    }
}
