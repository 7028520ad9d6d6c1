//go:build !linux

package kerneltimer

import (
	"errors"
	"time"
)

// Timer is none on this system.
type Timer struct{}

// New fails on this system.
func New(func()) (*Timer, error) { return nil, errors.ErrUnsupported }

// Reset does nothing.
func (*Timer) Reset(time.Duration) {}

// Stop does nothing.
func (*Timer) Stop() {}
