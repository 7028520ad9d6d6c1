// Package sameuser rejects connections of other users of the machine to a port on loopback,
// which, unlike a socket in a folder, has no owner. It recognises users on Linux only.
package sameuser
