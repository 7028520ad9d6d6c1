// Package terminal runs a program on a pseudo-terminal, for tests of its screen, of its keys, and of
// the state in which it leaves the terminal.
package terminal
