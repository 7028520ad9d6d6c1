// The same thing has the same colour in every dashboard. Red is kept for what is wrong.

/** Colours of an instance's states. */
export const states: Record<string, string> = {
  busy: '#56A64B',
  idle: '#8AB8FF',
  creating: '#FF9830',
  leaving: '#9FA7B3',
  starting: '#FF9830',
  ready: '#8AB8FF',
};

/** Colours of the phases of a call, in their order. */
export const callPhases: Record<string, string> = {
  admit: '#B877D9',
  queue: '#FF9830',
  core: '#FFCB7D',
  claim: '#F2CC0C',
  execute: '#56A64B',
  return: '#5794F2',
};

/** Colours of the phases of a cold start, in their order. */
export const startPhases: Record<string, string> = {
  decide: '#B877D9',
  create: '#5794F2',
  sandbox: '#8AB8FF',
  containers: '#FF9830',
  ready: '#F2CC0C',
  hello: '#73BF69',
  claim: '#37872D',
};

/** Colours of what becomes of orders. */
export const fates: Record<string, string> = {
  launched: '#5794F2',
  started: '#56A64B',
  failed: '#E02F44',
  lost: '#B877D9',
  cancelled: '#F2CC0C',
  evicted: '#FF9830',
  expired: '#9FA7B3',
  released: '#CAA9F5',
};

/** Colours of quantiles, which are seen on dark and on light pages. */
export const quantiles: Record<string, string> = {
  p50: '#8AB8FF',
  p90: '#3274D9',
  p99: '#B877D9',
};

/** Colours of what calls on a busy node do. */
export const onNode: Record<string, string> = {
  waiting: '#FF9830',
  holding: '#56A64B',
  preempted: '#F2CC0C',
  blocked: '#8AB8FF',
  demoted: '#B877D9',
};

/** Colours of classes of instances. */
export const classes: Record<string, string> = {
  LatencyCritical: '#B877D9',
  Standard: '#5794F2',
  Batch: '#9FA7B3',
};

/** Of what is needed, to lay over what is there. */
export const needed = '#E02F44';
export const good = '#56A64B';
export const warning = '#FF9830';
export const bad = '#E02F44';
export const plain = '#5794F2';
