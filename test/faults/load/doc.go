// Package load calls functions and keeps a record of every call.
//
// It never repeats a call: its requests cannot be replayed by net/http either.
// Like a load balancer it stops sending to a gateway that says it is not ready,
// and to one that does not take connections; unlike one, it keeps for each call
// exactly what the caller saw.
package load
