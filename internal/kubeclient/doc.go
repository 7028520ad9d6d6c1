// Package kubeclient accesses a Windlass in a Kubernetes cluster for a person with a kubeconfig,
// as internal/localapi does for a local one.
//
// It decides what to send. A Function is sent by server-side apply under the field manager
// windlass-cli, with only the fields that its author gave, so that defaults and the fields of
// others stay theirs. Code that is a path becomes code.inline, if it is the one file that the
// handler names, or else a ConfigMap of the Function's, named after its content and never
// changed. Code that does not fit there needs an image, and the error says so. Prepare finds the
// errors of a Function before anything is sent.
//
// Invariants:
//
//   - A call reaches the gateway over one stream of a connection that is dialled once: Tunnel
//     never sends anything again.
//   - Every error is an Error, or says by itself what to do next.
//   - Load and New send nothing to the cluster. Only a Tunnel, which its user closes, outlives
//     the call that started it.
package kubeclient
