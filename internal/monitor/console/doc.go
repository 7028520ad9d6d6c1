// Package console shows people, line by line, what happens to their functions and what these
// print: when an instance starts, is ready, or ends and why; failures; and calls, if they are
// logged.
//
// It is a slog.Handler that also writes the functions' own lines. A table of this package says
// which messages are shown, and how. Other messages appear only with debug messages.
package console
