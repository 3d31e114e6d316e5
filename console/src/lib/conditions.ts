// What the type of a condition says of it. Kubernetes has no rule for which way round a type is meant.

/** Conditions that are good news when they are true, and bad news when they are false. */
export const GOOD_WHEN_TRUE = new Set(['Ready', 'Available', 'Fetched', 'Verified', 'Compiled', 'Served', 'Registered', 'RootsReady', 'Healthy', 'Complete', 'Established', 'NamesAccepted']);

/** Conditions that are bad news when they are true, and no news when they are false. */
export const BAD_WHEN_TRUE = /^(Stalled|Degraded)$|(Conflict|NotFound|Missing|Taken|Refused|Failed|Failure|Pressure|Unavailable|Invalid|Error)$/;
