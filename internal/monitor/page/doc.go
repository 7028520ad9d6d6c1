// Package page serves the status page of a local Windlass: the monitor.View that windlass top
// shows, for a browser on the same machine.
//
//	GET /             the page
//	GET /status.json  a monitor.View as JSON
//
// It is read-only, needs no build and nothing from the network. It reads Windlass only on
// request, at most once a second for all viewers.
//
// Everyone on the machine can see it: a loopback port belongs to no user. It refuses names that
// lead to the machine without being loopback names, so that a foreign web page whose name was made
// to lead here cannot read it. It also refuses requests that come from foreign pages. Its script
// writes names and reasons as text, never as HTML, and the browser runs no other script.
package page
