// Package localapi provides access to a local Windlass: an HTTP API on a Unix socket in its data
// folder, the client of that API, and the socket itself. The paths and objects are those of a
// cluster's API server.
//
// The API is on a socket and not on a port because a client that may apply a Function decides
// which programs run here. A TCP port without authentication would give that right to every user
// of the machine and to every web page in a browser on it. The socket has mode 0600: the file
// system decides who may open it, and no web page can.
//
//	GET    /info                                     what runs here
//	GET    /apis/windlass.dev/v1alpha1/functions     all functions
//	GET    .../namespaces/{ns}/functions             those of a namespace
//	GET    .../namespaces/{ns}/functions/{name}      one, with its status
//	PUT    .../namespaces/{ns}/functions/{name}      apply it: ?basedOn=VERSION&dryRun
//	DELETE .../namespaces/{ns}/functions/{name}      delete it
//	GET    .../namespaces/{ns}/functions/{name}/log  ?follow=true&tail=100
//	GET    .../namespaces/{ns}/functions/{name}/decisions  the last ones
//	GET    .../namespaces/{ns}/functionrevisions     ?labelSelector=...: revisions
//
// Every answer is JSON except a log's, which is text. Every error is an Error. The package keeps
// no state of its own.
package localapi
