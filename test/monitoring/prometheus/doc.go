// Package prometheus runs a real Prometheus and asks it.
//
// What the package promises: the server listens on the address it is given, writes
// below the folder it is given, and has ended when Stop returns. It ends with its
// parent, however that ends.
package prometheus
