// Package logsink keeps whoever logs from waiting for whoever reads the log.
//
// A pipe that nobody reads, or a disk that hangs, would stop a program at its next
// line of log, and with it every call. A Writer takes lines at once and writes
// them behind the back of those who log. What it promises: Write never waits and
// never fails; lines are written whole and in their order; no more than a
// megabyte of them waits; and lines beyond that are dropped and counted.
package logsink
