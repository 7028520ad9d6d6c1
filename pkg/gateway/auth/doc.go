// Package auth decides who calls a gateway, whether the caller may, and within which limits.
//
// Two files configure it. The policy says, for each namespace, whether callers must
// authenticate and which limits apply, and which issuers of JSON Web Tokens are trusted. The
// keys file holds digests of API keys. Both are read again when they change. A broken file
// changes nothing; that is logged and counted.
//
// Invariants:
//
//   - In a namespace that requires authentication, a caller passes only with proof that it may
//     call this very function. The answer to other callers does not reveal whether the
//     function exists.
//   - Nothing in a token counts before its signature is verified, with a key of the issuer and
//     an algorithm that the policy names.
//   - API keys are compared in constant time, and an unknown key takes as long as a known one.
//   - No error, log line or metric contains a credential.
//   - While an issuer's keys cannot be read, the last ones remain valid.
package auth
