// Package archtest holds tests of the shape of the code: which package may
// import which, what the programs may link, where the clock may be read, that
// every package says what it is for, and that every pure one has an example.
//
// The rules are tables in layers_test.go, each with its reason. They look at
// source files under every build tag, so a rule holds on every system.
// A rule about a package that does not exist fails, and so does a package
// that no rule knows.
package archtest
