// Package demo is windlass demo: it starts a local Windlass on free ports,
// registers the example functions, replays a trace against it, and reports what
// became of every call. It has goals only where it is asked to check them.
package demo
