// Package floor decides how many instances a function keeps whether it is called or
// not, and when an idle one may leave: by the time of day (package schedule), and by
// what the function's idle times show.
//
// Idle times follow the hybrid histogram policy of Shahrad et al., "Serverless in the
// Wild" (USENIX ATC 2020), section 4.2. A Histogram counts them in bins of a minute.
// Nearly all calls come between the 1st and the 99th percentile, so an instance is of no
// use before that span and of little use after it. Windows are that span with a margin,
// if the histogram shows a pattern, and a Plan applies them to a function that is idle
// now.
//
// The policy differs from the paper where measurements favoured it. Idle times shorter
// than a bin do not count: an instance is kept that long in any case, and the many
// pauses within bursts would hide those between bursts. Pre-warming uses the 1st
// instead of the 5th percentile, and the last instance is kept for at least the fixed
// time unless no call is likely. Without a pattern, or when most idle times exceed the
// histogram, the fixed time applies; the paper keeps instances for the whole range then,
// or forecasts.
//
// A Plan concerns only the last instance. Those beyond it leave as usual, but not later
// than the last.
//
// A Floor says until when it holds, so nobody needs to ask again before something
// happens to the function.
package floor
