package podagent

import (
	"fmt"
	"testing"
)

func TestConnectionsInUseStayOpenHoweverManyThereAre(t *testing.T) {
	pool := newGatewayPool(Dialer{})
	conns := map[string]*memoryConn{}
	pool.dial = func(addr string) (conn, error) {
		conns[addr] = newMemoryConn(nil, nil)
		return conns[addr], nil
	}
	take := func(addr string) *gateway {
		t.Helper()
		g, err := pool.acquire(addr)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	used, unused := take("used"), take("unused")
	if take("used") != used {
		t.Error("a second connection to the same gateway")
	}
	pool.giveBack(used)
	pool.giveBack(unused)
	for i := range 2 * maxGateways {
		pool.giveBack(take(fmt.Sprint(i)))
		if len(pool.gateways) > maxGateways {
			t.Fatalf("%d connections are kept, want at most %d", len(pool.gateways), maxGateways)
		}
	}
	if conns["unused"].closings() != 1 {
		t.Error("an unused connection was kept for too long")
	}
	if conns["used"].closings() != 0 {
		t.Error("a connection in use was closed")
	}
	pool.giveBack(used)
	pool.closeIdle()
	for addr, c := range conns {
		if c.closings() != 1 {
			t.Errorf("the connection to %s was closed %d times, want once", addr, c.closings())
		}
	}
}
