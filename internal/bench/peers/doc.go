// Package peers has what windlass bench compares with, and what it calls: the function, proxies,
// and the load. They are the program benchpeer, which links little: in a program as large as
// windlass a proxy costs a tenth to a third more CPU time, because the garbage collector looks
// through all that is linked, and a dear unit would flatter Windlass.
//
// Each prints one line of JSON once it can be used, and ends when its standard input does, so that
// none outlives the bench.
package peers
