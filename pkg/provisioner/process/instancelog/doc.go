// Package instancelog says where the logs of a function's instances are and
// prints them as they grow.
//
// Every instance has two files, that of the function and that of its agent,
// which their processes write directly. Follow reads those of the functions
// only. It looks at the folder from time to time instead of being notified, so
// it works alike on every system and while Windlass is not running.
package instancelog
