package gateway

import (
	"net/http"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

// forbidden refuses the methods that are for proxies and servers, not for what is
// behind them: CONNECT asks for a tunnel, and an answer to TRACE repeats the
// caller's secrets. It returns nil for every other method.
func forbidden(method string) *problem {
	if method != http.MethodConnect && method != http.MethodTrace {
		return nil
	}
	p := newProblem(http.StatusMethodNotAllowed, invoke.ExecutedNo, reasonMethod, "functions cannot be called with the method "+method)
	return &p
}
