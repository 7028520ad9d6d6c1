// Package clients calls functions as the world does: curl, nghttp, h2load, ghz, Node.js and its ws,
// grpc-go, and nginx and Envoy in front of the gateway. Gateways, schedulers, controller and agents
// are real programs with TLS between them, in the lab of package lab. What arrives is compared with
// what was sent, and counts with zero; times are printed.
//
//	make test-clients               with one round of restarts
//	make clients DURATION=30m       with 30 minutes of them
//
// It needs Linux, root, iptables, and the programs of make cluster-binaries. Tests of a client that
// is not installed are skipped.
package clients
