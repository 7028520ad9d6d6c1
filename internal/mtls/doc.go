// Package mtls secures the wire between gateways, schedulers, the controller
// and agents, and decides who may call which method on it.
//
// There is one CA. Gateways, schedulers and the controller each have a
// certificate of it whose DNS names include that of their role in the domain of this
// Windlass; agents have none and prove who they are by what they send. Certificates of roles that
// connect to others must be good for client authentication too.
//
// What the package promises:
//
//   - Connections are TLS 1.3. A client goes on only if the server's certificate
//     is of the CA and has the name the client was made for, whatever address it
//     connects to. A server takes clients without a certificate, but none with
//     one that is not of the CA.
//   - Certificates are checked when a connection is made, anew each time: there
//     is no resumption. A connection that is open outlives a change of the CA
//     and the end of a certificate.
//   - Files that were replaced are in use some seconds later, without a restart.
//     A set that is broken, or is replaced halfway, changes nothing.
//   - A method that is listed nowhere is refused.
package mtls
