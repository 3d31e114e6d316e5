//! The measured figures.

use serde::Serialize;

use crate::settings::{Phase, Who};

/// One measured number.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Record {
    run: u32,
    phase: Phase,
    who: Who,
    figure: &'static str,
    value: f64,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) records: Vec<Record>,
    /// Errors, with their phases. A failed phase has no figures.
    pub(crate) failures: Vec<String>,
}

impl Figures {
    pub(crate) fn put(&mut self, run: u32, phase: Phase, who: Who, figure: &'static str, value: f64) {
        self.records.push(Record { run, phase, who, figure, value });
    }

    /// The names of the figures of a phase, in the order in which they were measured.
    pub(crate) fn names(&self, phase: Phase) -> Vec<&'static str> {
        let mut names = Vec::new();
        for record in self.records.iter().filter(|record| record.phase == phase) {
            if !names.contains(&record.figure) {
                names.push(record.figure);
            }
        }
        names
    }

    /// The median over the runs; none if the figure was not measured.
    pub(crate) fn median(&self, phase: Phase, who: Who, figure: &str) -> Option<f64> {
        let is_wanted =
            |record: &&Record| record.phase == phase && record.who == who && record.figure == figure;
        median(self.records.iter().filter(is_wanted).map(|record| record.value).collect())
    }
}

/// The middle value. For an even number of values, the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 { Some(upper) } else { Some(f64::midpoint(*values.get(middle - 1)?, upper)) }
}

/// The value that this share of the samples does not exceed (nearest rank).
pub(crate) fn percentile(samples: &[f64], percent: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_samples() {
        let samples: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&samples, 50.0), 50.0);
        assert_eq!(percentile(&samples, 99.0), 99.0);
        assert_eq!(percentile(&[7.0], 95.0), 7.0);
        assert!(percentile(&[], 95.0).is_nan());
    }

    #[test]
    fn a_median_lies_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![1.0, 2.0]), Some(1.5));
        assert_eq!(median(Vec::new()), None);
    }
}
