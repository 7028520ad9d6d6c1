// Package doccheck holds tests of what can go stale in the documentation: a
// link must lead to a file and a heading that exist, a make target must exist,
// and no path may be of one person's machine.
package doccheck
