// Package processors gives a server as many of Go's processors (GOMAXPROCS) as it uses, and not
// as many as its node has. While a processor of Go's is idle, each goroutine that becomes ready
// wakes a thread that looks for work, and mostly finds none: a gateway that takes one call after
// the other spends a third of its time on that. With as many processors as are busy, there is
// nobody to wake.
//
// [Width] decides, and [While] carries it out. If the environment has GOMAXPROCS, its number
// stays; and so it does where the kernel does not say what a program has used.
package processors
