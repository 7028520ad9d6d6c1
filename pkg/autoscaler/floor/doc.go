// Package floor decides how many instances a function keeps without calls, and when an idle
// instance may leave: by time of day (package schedule), and by the idle times of the function
// so far.
//
// Idle times follow the hybrid histogram policy of Shahrad et al., "Serverless in the Wild"
// (USENIX ATC 2020), section 4.2. A Histogram counts idle times in bins of a minute. Nearly all
// calls come between its 1st and its 99th percentile, so an instance is of no use before that
// span and of little use after it. If the histogram shows a pattern, Windows are that span with
// a margin, and a Plan applies them to a function that is idle now.
//
// The policy differs from the paper where measurements favoured it:
//
//   - Idle times shorter than a bin do not count. An instance is kept that long anyway, and
//     the many pauses within bursts would hide those between bursts.
//   - Pre-warming uses the 1st percentile instead of the 5th.
//   - The last instance stays for at least the fixed time, unless no call is likely.
//   - Without a pattern, or if most idle times exceed the histogram, the fixed time applies.
//     The paper then keeps instances for the whole range, or forecasts.
//
// A Plan concerns only the last instance. Other instances leave as usual, but not later than
// the last.
//
// A Floor says how long it stays valid, so that the scheduler evaluates it again only at that
// time or after an event of the function.
package floor
