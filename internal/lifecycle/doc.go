// Package lifecycle runs the parts of a program: it starts them one after the
// other, and stops them in the reverse order, each when all that were started
// after it have ended.
package lifecycle
