//go:build !linux

package nodeagent

// NewKernelTicker returns a ticker of Go's.
func NewKernelTicker() Ticker { return newGoTicker() }
