// Package podtoken decides which pod a service account token belongs to, without a request to the
// API server for each.
//
// A Verifier accepts a token that the cluster issued to a pod for one audience and that is valid
// now. It checks the signature with the cluster's public keys, which it reads rarely and keeps. If
// it cannot get the key of a token, it sends the token to the API server (TokenReview).
//
// Invariants:
//
//   - Nothing in a token counts before its signature is verified. Only algorithms with a
//     public key are accepted, and only the one that the key is for.
//   - While the API server is down, tokens are checked with the last keys.
//   - Verify takes at most four seconds, and waits only for an unknown key. However many tokens
//     name unknown keys, the API server gets at most one request for keys in five seconds and
//     five reviews a second, plus 20 for pods that run here.
//   - A key that the cluster removed is accepted for at most six more minutes while the API
//     server can be reached and Run runs.
//
// A token says what was true when it was issued. The caller finds out by the pod's UID whether the
// pod still exists, and what it is for.
package podtoken
