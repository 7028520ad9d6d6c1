// Package localapi is the way in to a local Windlass: an HTTP API on a Unix
// socket in its data folder, the client of that API, and the socket itself. The
// paths and objects are those that a cluster's API server would have.
//
// It is a socket and not a port because whoever may apply a Function decides
// which programs run here. A TCP port without authentication would give that to
// every user of the machine and to every web page that a browser on it shows.
// The socket has mode 0600: who may open it is for the file system to say, and
// no web page can.
//
//	GET    /info                                     what runs here
//	GET    /apis/windlass.dev/v1alpha1/functions     all functions
//	GET    .../namespaces/{ns}/functions             those of a namespace
//	GET    .../namespaces/{ns}/functions/{name}      one, with its status
//	PUT    .../namespaces/{ns}/functions/{name}      apply: make it so
//	DELETE .../namespaces/{ns}/functions/{name}      remove it
//	GET    .../namespaces/{ns}/functions/{name}/log  ?follow=true&tail=100
//	GET    .../namespaces/{ns}/functions/{name}/decisions  the last ones
//	GET    .../namespaces/{ns}/functionrevisions     ?labelSelector=...: revisions
//
// Every answer is JSON but a log's, which is text. Every error is an Error.
// The package keeps no state of its own.
package localapi
