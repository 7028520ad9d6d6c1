// Package coldstart says what the start of an instance spent its time with.
//
// Moments are when a start came to each point, as far as that is known. It promises
// that what follows from them is contiguous: every phase begins where the one before
// ends, none is negative, and they add up to the whole, whatever others told of their
// clocks. What is not known takes no time, so that the next phase that is known has
// it.
package coldstart
