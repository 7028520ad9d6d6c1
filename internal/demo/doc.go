// Package demo implements windlass demo: it starts a local Windlass on free ports, applies the
// example functions, replays a trace against it, and reports the result of every call. It checks
// goals only on request.
package demo
