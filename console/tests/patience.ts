// How long the tests wait for what should come. One constant, so that a machine that does much else can be given more of everything.

const scale = Number(process.env.PINTLE_PATIENCE);

/** How long a page may take to show something, in milliseconds: a minute, multiplied by the variable `PINTLE_PATIENCE`. */
export const PATIENCE = 60_000 * (Number.isFinite(scale) && scale > 0 ? scale : 1);

/** How long the cluster may take to do something. */
export const CLUSTER_PATIENCE = 3 * PATIENCE;

/** How long a whole test may take. */
export const TEST_PATIENCE = 4 * PATIENCE;
