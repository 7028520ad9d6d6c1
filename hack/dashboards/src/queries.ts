// Expressions of PromQL that many panels share.

/** Takes the functions that the variables at the top of a dashboard select. */
export const chosen = 'function_namespace=~"$namespace", function=~"$function"';

/** Takes the namespaces that the variable selects. */
export const inNamespace = 'function_namespace=~"$namespace"';

/** The part of a second's increase, over a window that fits the panel's resolution. */
export const rate = (series: string): string => `rate(${series}[$__rate_interval])`;

/** What was added since the point before, by labels if any are named. Windows overlap, so an increase would show each event in several points. */
export const added = (series: string, by: string[] = []): string =>
  `${summed(by)}(${rate(series)}) * $__interval_ms / 1000`;

const summed = (by: string[]): string => (by.length ? `sum by (${by.join(', ')}) ` : 'sum');

/** Calls that failed, per second: those with a status of 500 or more, and those whose answer broke off. */
export const failedCalls = (matchers: string): string =>
  `sum(${rate(`windlass_gateway_invocations_total{${matchers}, code=~"5.."}`)} or ${rate(`windlass_gateway_answers_broken_total{${matchers}}`)})`;

/** A sum of increases over the time shown as a whole number: Prometheus extrapolates to the ends of a window, and says 3.6. */
export const whole = (sum: string): string => `round(${sum})`;

/** A sum that is 0 where no such series exists yet, such as a counter of what has not happened. */
export const orZero = (expr: string): string => `${expr} or vector(0)`;

/** A sum by one label that is 0 under the name "none" while no such series exists. */
export const orNone = (label: string, expr: string): string =>
  `${expr} or on () label_replace(vector(0), "${label}", "none", "", "")`;

/** A quantile of a histogram's classic buckets, by further labels if any are named. */
export const quantile = (q: number, histogram: string, matchers = '', by: string[] = []): string =>
  `histogram_quantile(${q}, sum by (${[...by, 'le'].join(', ')}) (${rate(`${histogram}_bucket${matchers && `{${matchers}}`}`)}))`;

/** A quantile of a native histogram, which is nothing in a Prometheus that stores none. */
export const nativeQuantile = (q: number, histogram: string, matchers: string): string =>
  `histogram_quantile(${q}, sum(${rate(`${histogram}{${matchers}}`)}))`;

/** The mean of a native histogram's observations, which a Prometheus that stores none has as a sum and a count. */
export const nativeMean = (histogram: string, matchers: string): string => {
  const all = `sum(${rate(`${histogram}{${matchers}}`)})`;
  return `${mean(histogram, matchers)} or histogram_sum(${all}) / histogram_count(${all})`;
};

/** The mean of a histogram's observations, by labels if any are named. */
export const mean = (histogram: string, matchers = '', by: string[] = []): string => {
  const sum = (suffix: string) => `${summed(by)}(${rate(`${histogram}_${suffix}${matchers && `{${matchers}}`}`)})`;
  return `${sum('sum')} / ${sum('count')}`;
};

/** A share of two rates that is 0 while nothing comes. */
export const share = (part: string, whole: string): string => `(${part} or vector(0)) / (${whole} > 0) or vector(0)`;
