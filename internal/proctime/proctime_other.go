//go:build !linux

package proctime

import (
	"errors"
	"time"
)

// CPU fails here.
func CPU(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// Delay fails here.
func Delay(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// Switches fails here.
func Switches(int) (int64, error) { return 0, errors.ErrUnsupported }
