// Package schedule decides how many instances a function has at least because
// of the time: it has windows that come again, and each has a least number.
//
// A window begins whenever the clocks of its time zone show its start. Where
// they are put back, a start that they show twice begins twice; where they are
// put forward past a start, it begins as they are. So no start is missed, and
// the worst that a change of the clocks does is a window of more. It lasts as
// long as its duration, whatever the clocks show when that is over.
//
// Time is an argument. Floor also says until when its answer holds, so that
// nobody needs to ask before.
package schedule
