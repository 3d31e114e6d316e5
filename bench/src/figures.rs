//! The measured figures, and how each of them is measured.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::settings::{Phase, Who};

/// One measured number.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Record {
    pub(crate) run: u32,
    pub(crate) phase: &'static str,
    pub(crate) who: &'static str,
    pub(crate) figure: &'static str,
    pub(crate) value: f64,
}

/// The calls that a contestant made in a phase.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Calls {
    pub(crate) run: u32,
    pub(crate) phase: &'static str,
    pub(crate) who: &'static str,
    /// The part of the phase. Empty for a phase without parts.
    pub(crate) part: &'static str,
    /// Calls for roots and children, as `verb resource`.
    pub(crate) calls: BTreeMap<String, usize>,
    /// Calls for Leases, Events, and the host's own resources.
    pub(crate) apart: BTreeMap<String, usize>,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) records: Vec<Record>,
    pub(crate) calls: Vec<Calls>,
}

impl Figures {
    pub(crate) fn put(&mut self, run: u32, phase: Phase, who: Who, figure: &'static str, value: f64) {
        debug_assert!(how(figure).is_some(), "{figure} does not say how it is measured");
        self.records.push(Record { run, phase: phase.name(), who: who.name(), figure, value });
    }

    /// The median over the runs; none if the figure was not measured.
    pub(crate) fn median(&self, phase: Phase, who: Who, figure: &str) -> Option<f64> {
        let records = self.records.iter();
        let matching = records.filter(|record| {
            record.phase == phase.name() && record.who == who.name() && record.figure == figure
        });
        median(matching.map(|record| record.value).collect())
    }
}

/// The middle value. For an even number of values, the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 { Some(upper) } else { Some((values.get(middle - 1)? + upper) / 2.0) }
}

/// The value that this share of the samples does not exceed (nearest rank).
pub(crate) fn percentile(samples: &[f64], percent: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank is small and positive"
    )]
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

/// How each figure is measured.
pub(crate) const HOW: [(&str, &str); 84] = [
    (
        "converged_s",
        "from sending the first create until the benchmark's watch showed the last root's status right (message, URL, ready replicas, observedGeneration; with Pods also Ready=True). Contestants write the status after the children; after they are quiet, a list of each kind shows every child as the logic has it",
    ),
    (
        "quiet_s",
        "from the beginning of the phase until the contestant's last call for roots and children was answered, by the audit log",
    ),
    ("mutating_calls", "calls for roots and children that are not get, list or watch, by the audit log"),
    ("mutating_calls_per_root", "mutating_calls over the number of roots"),
    ("mutating_calls_per_sample", "mutating_calls over the number of samples"),
    ("reads", "get and list calls for roots and children, by the audit log"),
    (
        "beyond_leases_and_watches",
        "every call but those to Leases and beginnings of watches, by the audit log",
    ),
    (
        "cpu_s",
        "user and system time of the contestant's process from the beginning of the phase until it was quiet, by /proc/PID/stat",
    ),
    ("peak_mib", "VmHWM of the contestant's process at the end of the phase"),
    ("resident_mib", "VmRSS of the contestant's process at the end of the phase"),
    ("idle_mib", "VmRSS of the contestant's process before the roots of the phase were created"),
    (
        "idle_peak_mib",
        "VmHWM of the contestant's process before the roots of the phase were created: what starting, and compiling the module, took",
    ),
    (
        "bytes_a_root",
        "pintle_cache_bytes by pintle_cache_objects of the host's /metrics, of roots, at the end of the phase",
    ),
    ("bytes_a_child", "the same of children"),
    ("guest_calls", "growth of pintle_guest_call_seconds_count in the host's /metrics during the phase"),
    ("apiserver_cpu_s", "user and system time of kube-apiserver during the phase, by /proc/PID/stat"),
    (
        "others_cores",
        "cores that everything on the machine but the benchmark and what it started kept busy during the phase, by /proc/stat: how far the other figures are disturbed",
    ),
    (
        "machine_speed",
        "how often in a second the machine sorted 65,536 numbers, all cores together, just before and just after the phase: what its neighbours left of it",
    ),
    (
        "config_p50_ms",
        "from the reply to the patch of the root until the benchmark's watch showed its ConfigMap with it",
    ),
    ("config_p99_ms", "as config_p50_ms"),
    (
        "status_p50_ms",
        "from the reply to the patch of the root until the benchmark's watch showed its status with it",
    ),
    ("status_p99_ms", "as status_p50_ms"),
    ("samples", "how many samples a latency has"),
    (
        "healed_p50_ms",
        "from the reply to the deletion of a child (ConfigMap, Deployment, Service, Ingress in turn) until the benchmark's watch of metadata showed one with another uid",
    ),
    ("healed_p99_ms", "as healed_p50_ms"),
    (
        "sleeps",
        "voluntary context switches of all threads of the contestant's process during the phase, by /proc/PID/task/*/status: every timer that fires is one",
    ),
    ("seconds", "how long the phase lasted"),
    (
        "drift_repaired_s",
        "from starting the process until the benchmark's reads showed both children right: one changed and one deleted while it was down",
    ),
    ("drift_mutating_calls", "mutating calls of the restart after which two children had drifted"),
    (
        "swap_s",
        "from the accepted change (Pintle: the patch of the Reconciler; NATIVE: SIGTERM to the old process) until the contestant's last call was answered; FLOOR: from its first apply to its last answer",
    ),
    (
        "swap_applied_s",
        "from the accepted change until the benchmark's watch showed the last ConfigMap with the new logic",
    ),
    (
        "swap_with_statuses_s",
        "FLOOR: one apply and one status write a root, from its first to its last answer",
    ),
    (
        "created_during_p95_ms",
        "from the reply to the create of a root, one every 100 ms during a second swap, until the benchmark's watch showed its status right",
    ),
    (
        "edited_during_p95_ms",
        "from the reply to the patch of a root, one every 100 ms during a second swap, until the benchmark's watch showed its ConfigMap with it",
    ),
    (
        "further_1000_mib",
        "growth of VmHWM from the first load of roots to the second, for each thousand roots with their four children",
    ),
    (
        "bytes_per_root",
        "growth of VmRSS from the first load of roots to the second, over the roots of the second: a root and its four children",
    ),
    ("roots_per_s", "number of roots over converged_s"),
    (
        "restart_quiet_s",
        "after a restart over all roots of the phase: from starting the process until its last call for roots and children was answered",
    ),
    ("restart_mutating_calls", "mutating_calls of that restart"),
    ("half_resident_mib", "VmRSS when half of the roots were right"),
    ("alone_p99_ms", "config_p99_ms before there was a neighbour"),
    ("beside_p99_ms", "config_p99_ms with a neighbour of as many roots whose guest loops for ever"),
    ("pod_bytes", "bytes of the direct list over the number of Pods"),
    (
        "first_cpu_us_a_pod",
        "user and system time of the gateway over the number of Pods, by /proc/PID/stat, for the first list, of which it remembers nothing",
    ),
    ("view_first_ms", "how long that list took, from sending the request until its last byte"),
    (
        "cpu_us_a_pod",
        "the same time for the further lists of one client, over the number of lists and of Pods",
    ),
    ("together_cpu_us_a_pod", "the same for the lists of sixteen clients"),
    (
        "direct_p50_ms",
        "view-list: a list of all Pods as JSON without compression, from sending the request until its last byte. view-event: from sending the patch of a Pod until the last byte of the line with it, on a watch of Pods",
    ),
    (
        "view_p50_ms",
        "the same through the view, in turns with the direct request; an event is one and the same on both watches",
    ),
    ("direct_p99_ms", "as direct_p50_ms"),
    ("view_p99_ms", "as view_p50_ms"),
    (
        "direct_together_p50_ms",
        "as direct_p50_ms, while sixteen clients send the request at once, each over its own connection",
    ),
    ("view_together_p50_ms", "the same through the view, in turns"),
    ("same_direct_p50_ms", "a get of always the same Pod, from sending the request until its last byte"),
    ("same_view_p50_ms", "the same through the view, in turns"),
    ("same_direct_p99_ms", "as same_direct_p50_ms"),
    ("same_view_p99_ms", "as same_view_p50_ms"),
    (
        "distinct_direct_p50_ms",
        "a get of another Pod each time, from sending the request until its last byte",
    ),
    ("distinct_view_p50_ms", "the same through the view, in turns: the gateway has each one reviewed"),
    ("distinct_direct_p99_ms", "as distinct_direct_p50_ms"),
    ("distinct_view_p99_ms", "as distinct_view_p50_ms"),
    (
        "crd_reply_p50_ms",
        "a merge patch of the weight of another Llama each time, of a CRD, from sending it until the reply has arrived",
    ),
    ("view_reply_p50_ms", "the same through the view, in turns"),
    (
        "crd_event_p50_ms",
        "from sending that patch until the last byte of the line with it, on a watch of the CRD",
    ),
    ("view_event_p50_ms", "the same through the view: the patch, and the watch"),
    ("crd_event_p99_ms", "as crd_event_p50_ms"),
    ("view_event_p99_ms", "as view_event_p50_ms"),
    (
        "crd_patch_s",
        "from sending the first create of a Llama of a CRD until a watch has shown that all are gone, under a controller that adds a finalizer and takes it off by merge patches that name the version; the median of the rounds",
    ),
    ("view_patch_s", "the same through the view, in turns"),
    ("crd_update_s", "as crd_patch_s, under a controller that replaces the object"),
    ("view_update_s", "the same through the view, in turns"),
    (
        "gateway_cpu_ms_a_llama",
        "user and system time of the gateway over the Llamas that were made and deleted through the view",
    ),
    ("crd_apiserver_cpu_ms_a_llama", "user and system time of the API server over the Llamas of the CRD"),
    ("view_apiserver_cpu_ms_a_llama", "the same over the Llamas of the view"),
    (
        "core_share",
        "user and system time of the gateway over the elapsed time, by /proc/PID/stat, from the first change until all watches have shown the last one",
    ),
    (
        "guest_calls_a_second",
        "growth of pintle_guest_call_seconds_count in the gateway's /metrics over the elapsed time",
    ),
    (
        "events_a_second",
        "events that all watches showed over the elapsed time: each change on every watch, and no other",
    ),
    ("more_core_share", "core_share with more Pods"),
    ("more_peak_mib", "peak_mib of another process, with more Pods"),
    ("more_resident_mib", "resident_mib of that process"),
    ("more_guest_calls_a_second", "guest_calls_a_second with more Pods"),
    ("more_events_a_second", "events_a_second with more Pods"),
    (
        "alone_s",
        "from the reply to the deletion of a namespace with LlamaRecords until it is gone, while the API server does not know the view: once before it does, and once after",
    ),
    ("with_view_s", "the same for a namespace with Llamas, made through the view"),
];

/// How a figure is measured.
pub(crate) fn how(figure: &str) -> Option<&'static str> {
    HOW.iter().find(|(name, _)| *name == figure).map(|(_, how)| *how)
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
