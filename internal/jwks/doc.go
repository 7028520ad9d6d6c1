// Package jwks supports checking JSON Web Tokens offline: it keeps the issuers' public keys, and
// the results for recent tokens.
//
// Invariants of a Keyring:
//
//   - Keys remain valid for 24 hours after they were read, also while their source is down.
//   - A lookup blocks only for an unknown key, for at most two seconds.
//   - However many tokens name unknown keys, refreshes of the source are rate-limited.
//
// Seen remembers the result for a token by its digest for a minute. Neither decides what a token
// permits.
package jwks
