// Package instancelog finds the logs of a function's instances and prints them as they grow.
//
// Every instance has two log files, one of the function and one of its agent, which their
// processes write directly. A third file has the times at which the function's log grew, as a
// Recorder saw it, because a process that writes a file adds no times. Follow reads only the
// functions' logs, in the order of these times. It polls the folder instead of subscribing to
// changes, so that it works alike on every system and while Windlass is not running.
package instancelog
