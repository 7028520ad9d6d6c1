// Package terminal implements windlass top: it shows a monitor.View on a terminal and refreshes it
// until its user quits. Where there is no terminal, Print writes one View as a table.
//
// The screen is a function of a View, of the pressed keys and of the terminal's size; only Run
// waits, reads and writes. One goroutine reads the metrics, so that no process gets two requests
// at a time. While an answer is late, keys still work, the last View stays, and the screen says
// what is wrong.
//
// The colours are the sixteen of the terminal, and none if NO_COLOR is set. A screen that is too
// narrow loses whole columns, the least important first, and never a part of a number.
package terminal
