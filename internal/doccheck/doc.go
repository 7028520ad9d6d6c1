// Package doccheck holds tests of what can go stale in the documentation: a
// link must lead to a file and a heading that exist, a make target must exist,
// and no path may be of one person's machine. Design pages begin with status and
// date. Every field of a manifest, every reason of a condition or an error answer,
// and every metric must be told of, and no metric or field that does not exist. Public
// texts must not have phrases that made readers stop.
package doccheck
