// Package coldstart splits the start of an instance into phases, from Moments: the times at which
// the start reached each point, as far as they are known.
//
// Invariants, whatever clocks the reporters have:
//
//   - Every phase begins where the one before ends.
//   - No phase is negative.
//   - The phases add up to the whole start.
//   - A phase whose end is unknown takes no time; the next known phase includes it.
package coldstart
