package local

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
)

// listeners are where a Windlass is reached: by those who call functions, by those who
// watch it, by its own parts, and by the other verbs of the command. Those that are not
// open are nil.
type listeners struct{ front, ops, wire, control net.Listener }

// open opens all but that of the parts, which instances must know before.
func (l *listeners) open(c Config) (err error) {
	if l.front, err = listen("--listen", c.Listen); err != nil {
		return err
	}
	if l.ops, err = listen("--ops-listen", c.OpsListen); err != nil {
		return err
	}
	l.control, err = localapi.Listen(c.DataDir)
	return err
}

func listen(flag, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s %s: another program listens there already; stop it, or choose another address with %s (port 0 takes a free one)", flag, addr, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, addr, err)
	}
	return l, nil
}

func (l *listeners) close() {
	for _, open := range []net.Listener{l.wire, l.front, l.ops, l.control} {
		if open != nil {
			_ = open.Close()
		}
	}
}

// GatewayURL is where functions are called.
func (l *listeners) GatewayURL() string { return "http://" + l.front.Addr().String() }

// OpsURL is where health and metrics are.
func (l *listeners) OpsURL() string { return "http://" + l.ops.Addr().String() }

// FunctionURL is where one function is called.
func (l *listeners) FunctionURL(fn *v1alpha1.Function) string {
	return l.GatewayURL() + address.Path(fn.Key())
}
