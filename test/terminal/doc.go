// Package terminal runs a program on a pseudo-terminal, for tests of what it shows to
// a person, of the keys that it heeds, and of the terminal that it leaves behind.
package terminal
