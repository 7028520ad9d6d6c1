// Package terminal is windlass top: it shows a live.View on a terminal, again and
// again, until its user has seen enough. Where there is no terminal, Print writes one
// View as a table.
//
// Everything that is seen is a function of a View, of the keys that were pressed and
// of the terminal's size; Run alone waits, asks and writes. One goroutine asks, so
// that nobody is asked twice at a time: while an answer is late, keys still work and
// the last View stays, and the screen says what is wrong.
//
// The colours are the sixteen of the terminal, and none if NO_COLOR is set. A screen
// that is too narrow loses columns, the least telling first, and never a part of a
// number.
package terminal
