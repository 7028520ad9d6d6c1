//go:build !linux

package measure

import (
	"errors"
	"syscall"
)

var errLinux = errors.New("windlass bench needs Linux: it reads what processes used from its kernel")

func supported() error { return errLinux }

func childAttr() *syscall.SysProcAttr { return nil }

func childrenOf(int) ([]int, error) { return nil, errLinux }

func programOf(int) (string, error) { return "", errLinux }
