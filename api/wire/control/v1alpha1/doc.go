// Package controlwire is the wire within the control plane, generated from
// control.proto: gateways offer tickets to schedulers, and schedulers tell gateways,
// each other and the controller what they know.
package controlwire
