//go:build !linux

package callwire

import "net"

// limitUnacknowledged does nothing: writes of a Conn have deadlines anyway.
func limitUnacknowledged(*net.TCPConn) error { return nil }
