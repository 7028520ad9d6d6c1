// Package console shows people, line by line, what happens to their functions and what
// these print: when an instance starts, is ready, or ends and why; what goes wrong; and
// calls, if these are logged.
//
// It is a slog.Handler beside which the functions' own lines are written. Which messages
// are shown, and how, is a table of this package's; what is not in it is only shown if
// debug messages are.
package console
