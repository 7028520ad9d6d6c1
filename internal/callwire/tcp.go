package callwire

import (
	"net"
	"time"
)

// How a peer that is gone with its node is noticed: on an idle connection by keepalives, and
// otherwise by data that stays unacknowledged, for which the kernel sends no keepalives.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: 500 * time.Millisecond, Count: 3}

// unacknowledgedFor is as long as the keepalives take.
const unacknowledgedFor = 2500 * time.Millisecond

// NoticeDeadPeer lets the kernel end a TCP connection whose peer is gone with its node, within
// some seconds. It leaves other connections alone.
func NoticeDeadPeer(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	// Without these the connection also ends, by the pings and deadlines of Conn.
	_ = tcp.SetKeepAliveConfig(keepAlive)
	_ = limitUnacknowledged(tcp)
}
