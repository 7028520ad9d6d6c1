// Package journal remembers the last calls of a local Windlass, and which lines of
// their instance's log are theirs.
//
// The processes of instances write their logs directly, without times. So the journal
// notes how long the log is whenever a call of the instance ends: what was written
// between the end of the one before and the end of a call is that call's. Of calls
// that an instance ran at the same time it can only tell that they share their lines.
//
// It holds a bounded number of calls; the oldest go first.
package journal
