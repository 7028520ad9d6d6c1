// Package mtls secures the wire between gateways, schedulers, the controller and agents, and
// decides who may call which method of gRPC on it. Between agents and gateways it carries package
// callwire instead, where each claim of a call proves by its token what it may do.
//
// One CA signs all certificates. Gateways, schedulers and the controller each have a certificate
// whose DNS names include that of their role in the domain of this Windlass. Agents have none and
// prove who they are by what they send. The certificates of roles that connect to others must also
// allow client authentication.
//
// Invariants:
//
//   - Connections are TLS 1.3. A client continues only if the server's certificate is signed
//     by the CA and has the name that the client was made for, whatever address it connects
//     to. A server accepts clients without a certificate, but none with a foreign one.
//   - Certificates are checked when a connection is made, each time: there is no resumption.
//     An open connection outlives a change of the CA and the end of a certificate.
//   - Replaced files take effect some seconds later, without a restart. A set that is broken,
//     or half replaced, changes nothing.
//   - A method that is listed nowhere is refused.
//   - Who speaks callwire says so in the handshake, so that neither side takes the other for gRPC.
package mtls
