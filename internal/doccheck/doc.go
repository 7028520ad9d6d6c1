// Package doccheck tests that the documentation is not stale: every link leads to an existing
// file and heading, every make target exists, and no path belongs to one person's machine. Design
// pages begin with status and date. Every field of a manifest, every reason of a condition or an
// error answer, and every metric is documented, and no other metric or field is. Public texts
// and pages contain no phrase that made readers stop.
package doccheck
