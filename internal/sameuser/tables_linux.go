package sameuser

// tables are where the kernel tells whose sockets there are. A program may reach an
// address of version 4 from a socket of version 6.
var tables = []string{"/proc/net/tcp", "/proc/net/tcp6"}
