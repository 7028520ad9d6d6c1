// Package lifecycle runs the parts of a program: it starts them one after the other, and stops
// them in reverse order, each when all that started after it have ended.
package lifecycle
