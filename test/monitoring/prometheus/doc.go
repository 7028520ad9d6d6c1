// Package prometheus runs a real Prometheus and queries it.
//
// The server listens on the given address, writes below the given folder, and has ended when Stop
// returns. It ends with its parent, however that ends.
package prometheus
