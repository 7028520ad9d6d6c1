// Package schedule decides how many instances a function keeps at a time of day: it has recurring
// windows, and each has a minimum.
//
// A window begins whenever the clocks of its time zone show its start. Where clocks are put back,
// a start that they show twice begins twice. Where they are put forward past a start, it begins at
// that moment. So no start is missed, and a change of the clocks adds at most one window. A window
// lasts as long as its duration, whatever the clocks then show.
//
// Time is an argument. Floor also returns until when its answer holds, so that nobody needs to ask
// earlier.
package schedule
