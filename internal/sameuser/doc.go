// Package sameuser keeps other users of the machine away from a port on the loopback,
// which, unlike a socket in a folder, has no owner. It knows them on Linux only.
package sameuser
