//go:build !linux

package cgroups

import (
	"errors"
	"time"
)

func processTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// OwnCores is none: there are no control groups, either.
func OwnCores() []int { return nil }
