// What more than one dashboard draws of the chosen functions, for any size and words.

import type { Looks, Query } from './kit';
import { fates, needed, states } from './palette';
import { added, chosen, orNone, orZero, share } from './queries';

type Drawn = { unit: string; queries: Query[] } & Looks;

const within = (counter: string): string => `sum(increase(${counter}{${chosen}}[$__range]))`;

/** The share of calls that had to start an instance, over the whole time shown. */
export const coldCalls = {
  title: 'Cold calls', unit: 'percentunit', limits: { warn: 0.05, bad: 0.25 }, course: false,
  description: 'Share of the calls within the time shown that were the first of their instance, and so may have waited for its start.',
  query: { expr: share(within('windlass_gateway_cold_invocations_total'), within('windlass_gateway_invocations_total')) },
};

/** Calls that wait, and the wait of the oldest. */
export const waiting: Drawn = {
  unit: 'none',
  queries: [
    { expr: `sum(max by (function_namespace, function, revision) (windlass_scheduler_queue_length{${chosen}}))`, legend: 'waiting calls' },
    { expr: `max(windlass_scheduler_queue_oldest_wait_seconds{${chosen}})`, legend: 'oldest wait' },
  ],
  colours: { 'waiting calls': '#FF9830' },
  right: { 'oldest wait': { unit: 's', label: 'oldest wait', colour: '#B877D9' } },
};

/** Instances by state, and how many the last decisions held to be needed. */
export const againstNeed: Drawn = {
  unit: 'none', stacked: true, colours: states,
  queries: [
    { expr: `sum by (state) (max by (function_namespace, function, revision, state) (windlass_scheduler_instances{${chosen}}))`, legend: '{{state}}' },
    { expr: `sum(max by (function_namespace, function, revision) (windlass_scheduler_desired_instances{${chosen}}))`, legend: 'needed' },
  ],
  over: { needed },
};

/** Decisions to create instances, by reason. */
export const decisions: Drawn = {
  unit: 'none', bars: true, stacked: true,
  queries: [{ expr: orNone('reason', added(`windlass_scheduler_decisions_total{${chosen}}`, ['reason'])), legend: '{{reason}}' }],
};

/** What happened to instances that were launched. */
export const becoming: Drawn = {
  unit: 'none', bars: true, colours: fates,
  queries: Object.keys(fates).map((fate) => ({
    expr: orZero(added(`windlass_scheduler_instances_${fate}_total{${chosen}}`)), legend: fate,
  })),
};

/** The meaning of each of the fates. */
export const fatesMean = 'Instances that were *launched*, and what happened to them: *started*; *failed* to start; were *lost* after it; *cancelled* before they were ready; *evicted* for another function; *expired* without calls; *released* because no call is expected soon, or because there were too many.';
