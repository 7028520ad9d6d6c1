// Package address decides where functions are called: the path of each on the shared origin,
// and the hosts of its own. Gateways route calls by it, and the controller and the command
// print addresses by it.
package address
