//go:build !linux

package measure

import (
	"errors"
	"syscall"
	"time"
)

var errLinux = errors.New("windlass bench needs Linux: it reads what processes used from its kernel")

func supported() error { return errLinux }

func childAttr() *syscall.SysProcAttr { return nil }

func cpuOf(int) (time.Duration, error) { return 0, errLinux }

func switchesOf(int) (int64, error) { return 0, errLinux }

func childrenOf(int) ([]int, error) { return nil, errLinux }

func programOf(int) (string, error) { return "", errLinux }
