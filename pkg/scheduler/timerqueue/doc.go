// Package timerqueue returns which of many timers are due. A timer that is not due costs
// nothing: Due looks only at those that are.
//
// The queue reads no clock, runs no goroutine, and is not safe for concurrent use.
package timerqueue
