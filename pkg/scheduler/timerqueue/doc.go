// Package timerqueue tells which of many sleepers are to be woken now. What sleeps costs
// nothing: only those that are due are looked at.
//
// It reads no clock and wakes nobody itself, and it is not safe for concurrent use.
package timerqueue
