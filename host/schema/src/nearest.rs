//! Suggests a name for one that does not exist.

/// How similar two names must be, from 0 to 1, for one to be a misspelling of the other; and how much less similar than the best name
/// another suggestion may be.
const ALIKE: f64 = 0.8;
const NEARLY_AS_ALIKE: f64 = 0.05;
/// The longest name that is looked for, in bytes. It is compared letter by letter with each known name.
const NAME_BYTES_MAX: usize = 253;
/// The most names in a suggestion.
const SHOWN_MAX: usize = 3;

/// `; did you mean replicas?`, or an empty text if no name is similar.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(name, known).as_slice() {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        [first @ .., last] => format!("; did you mean {} or {last}?", first.join(", ")),
    }
}

/// The most similar names, the best one first. Case is ignored, because it is the most frequent mistake.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if name.len() > NAME_BYTES_MAX {
        return Vec::new();
    }
    let name = name.to_lowercase();
    let likeness = |known: &str| strsim::jaro_winkler(&name, &known.to_lowercase());
    let mut found: Vec<(f64, &str)> = known.map(|known| (likeness(known), known)).collect();
    found.sort_by(|(one, name), (other, another)| other.total_cmp(one).then(name.cmp(another)));
    let least = found.first().map_or(ALIKE, |(best, _)| ALIKE.max(best - NEARLY_AS_ALIKE));
    found.into_iter().filter(|(alike, _)| *alike >= least).map(|(_, name)| name).take(SHOWN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_told() {
        let of = |name: &str, known: &[&'static str]| did_you_mean(name, known.iter().copied());
        assert_eq!(
            of("replica", &["replicas", "paused", "revisionHistoryLimit"]),
            "; did you mean replicas?"
        );
        assert_eq!(
            of("containerport", &["containerPort", "hostPort", "name"]),
            "; did you mean containerPort?"
        );
        assert_eq!(of("nam", &["name", "names", "x"]), "; did you mean name or names?");
        assert_eq!(of("colour", &["replicas", "paused"]), "");
    }
}
