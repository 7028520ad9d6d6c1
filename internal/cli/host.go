package cli

import "time"

// host is what the command has around it: its streams, the clock and the environment.
type host struct {
	Streams
	now    func() time.Time
	getenv func(string) string
	// exit ends the process at once.
	exit func(code int)
}

// getenvBut is the environment without one variable.
func (h *host) getenvBut(without, name string) string {
	if name == without {
		return ""
	}
	return h.getenv(name)
}
