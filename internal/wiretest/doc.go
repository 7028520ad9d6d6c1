// Package wiretest makes messages of the wire as later releases may send them, for tests of how
// earlier releases handle them.
package wiretest
