package callwire

// ALPN is the protocol that agents and gateways agree on in the handshake of TLS, so that no
// connection is taken for one that carries something else. Releases that differ only in frames
// that one of them ignores have the same; Hello and Welcome say the rest.
const ALPN = "windlass-call/1"
