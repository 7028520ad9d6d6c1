// Package demo is windlass demo: it starts a local Windlass on free ports,
// registers the example functions, replays a real trace against it, and reports
// what became of every call. It fails if a call failed or was lost, or if too
// many were cold starts.
package demo
