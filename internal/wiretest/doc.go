// Package wiretest makes messages of the wire as later releases may send them, for
// tests of what earlier ones make of them.
package wiretest
