// Package keepalive decides how long the last instance of a function without
// calls is kept, and when one is started ahead of the next call.
//
// It is the hybrid histogram policy of Shahrad et al., "Serverless in the
// Wild" (USENIX ATC 2020), section 4.2. A Learner counts the idle times of a
// function, in bins of a minute. Nearly all calls come between the 1st and the
// 99th percentile of them, so that an instance has no use before, and little
// after. Windows are these two with a margin, if there is a pattern to be seen,
// and Plan says what they mean for a function that is idle now.
//
// It differs from the paper where that proved better. Idle times that are shorter
// than a bin are not counted: an instance is kept that long in any case, and the
// pauses within bursts, which are most of all, would hide those between bursts.
// Pre-warming takes the 1st instead of the 5th percentile, and the last instance
// is kept for the fixed time at least, other than while no call is likely. Where
// the histogram shows no pattern, or most idle times are beyond it, the caller
// falls back on the fixed time; the paper keeps instances for the whole range
// then, or forecasts.
//
// Only the last instance is kept by a plan. A function that is busy is none of
// its concern, and instances beyond the last leave as they do without it, but
// no later than the last.
package keepalive
