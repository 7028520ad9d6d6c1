// Package auth tells who calls a gateway, whether they may, and how much.
//
// What counts is in two files. The policy says for each namespace whether callers
// must prove who they are and what limits hold, and which issuers of JSON Web
// Tokens are believed. The keys are API keys; only their digests are kept.
// Both are read again when they change; one that is broken changes nothing, and
// that is logged and counted.
//
// What the package promises:
//
//   - In a namespace that requires it, nobody is let through who has not proven
//     to be allowed to call just that function. Whether the function exists makes
//     no difference to the answer.
//   - Nothing in a token counts before its signature is found right, with a key
//     of the issuer and one of the algorithms that the policy names.
//   - API keys are compared in constant time, and an unknown one takes as long as
//     a known one.
//   - No error, log or metric holds a credential.
//   - While an issuer's keys cannot be read, those read last count.
package auth
