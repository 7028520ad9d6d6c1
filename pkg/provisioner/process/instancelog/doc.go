// Package instancelog says where the logs of a function's instances are and
// prints them as they grow.
//
// Every instance has two files, that of the function and that of its agent,
// which their processes write directly. A third one has the times at which that
// of the function grew, as a Recorder saw it: a process that writes a file says
// nothing of time. Follow reads the functions' only, in the order of these times.
// It looks at the folder from time to time instead of being notified, so it works
// alike on every system and while Windlass is not running.
package instancelog
