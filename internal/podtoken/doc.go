// Package podtoken tells which pod a service account token belongs to, without
// asking the API server for each.
//
// A Verifier accepts a token that the cluster issued to a pod for one audience,
// and that is valid now. It checks the signature with the cluster's public keys,
// which it reads rarely and keeps. If the key of a token cannot be had, the API
// server is asked about the token itself (TokenReview).
//
// What the package promises:
//
//   - Nothing in a token counts before its signature is found right. Only
//     algorithms with a public key are considered, and of these only the one that
//     the key is for.
//   - While the API server is away, tokens are checked with the keys read last.
//   - Verify takes four seconds at most, and waits only for a key that it has never
//     seen. However many tokens name such keys, the API server is asked for keys
//     once in five seconds at most, and for reviews five times a second, besides 20 for pods that run here.
//   - A key that the cluster withdrew counts for six minutes more at most while
//     the API server can be reached and Run runs.
//
// A token says what was true when it was issued. That the pod still exists, and
// what it is for, is for the caller to find out by its UID.
package podtoken
