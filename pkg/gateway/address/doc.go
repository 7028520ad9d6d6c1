// Package address says where functions are called: by which path on the origin that they
// share, and on which hosts of their own. Gateways find functions by it, and what tells
// people and programs where a function is asks it too.
package address
