//go:build !linux

package sameuser

var tables []string
