// Package page is the status page of a local Windlass: the live.View that windlass top
// shows, for a browser on the same machine.
//
//	GET /             the page
//	GET /status.json  a live.View as JSON
//
// It is read-only, needs no build and nothing from the net. Nobody asks anything of
// Windlass unless somebody looks: a View is made when it is asked for, at most once a
// second for all who look.
//
// What it shows is for whoever sits at the machine. Names that lead to the machine
// without being loopback names are refused, so that a page of somebody else, whose
// name was made to lead here, cannot read it; requests that come from pages of others
// are refused as well. Its script writes names and reasons as text, never as HTML, and
// the browser is told to run no other script.
package page
