// Package kubeclient is the way in to a Windlass that runs in a Kubernetes
// cluster, for a person with a kubeconfig: what internal/localapi is to a local one.
//
// It decides what is sent. A Function goes by server-side apply under the field
// manager windlass-cli, and only the fields that its author gave, so that
// defaults and the fields of others stay theirs. Code that is a path becomes
// code.inline, if it is the one file that the handler names, or else a ConfigMap
// of the Function's, named after its content and never changed; what does not
// fit there needs an image, and its author is told. Prepare finds what is wrong
// with a Function before anything is sent.
//
// It promises that a call reaches the gateway over one stream of a connection
// that is dialled once: Tunnel never sends anything again.
//
// Every error is an Error or says by itself what to do next. Load and New ask
// the cluster nothing, and nothing here outlives the call that started it but a
// Tunnel, which its user closes.
package kubeclient
