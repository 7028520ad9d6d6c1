// Package jwks holds what checking JSON Web Tokens offline needs: the public
// keys of whoever issues them, and a memory of those that were found right.
//
// A Keyring reads the keys rarely and keeps them. It promises that keys read once
// count on for 24 hours while their source is away, that asking for a key waits only if it has
// never been seen, for two seconds at most, and that however many tokens name
// such keys, the source is asked no oftener than the Keyring was told.
//
// Seen remembers what was found out about a token by its digest, for a minute.
//
// Neither decides what a token is good for.
package jwks
