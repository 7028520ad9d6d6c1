// Package floor decides how many instances a function has at a moment whether it is
// called or not, and when an idle one may leave: because of the time of day (package
// schedule), and because of what its idle times teach (package keepalive).
//
// It tells until when its answer holds, so that nobody needs to ask about a function
// before something happens to it.
package floor
