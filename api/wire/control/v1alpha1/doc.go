// Package controlwire is the wire within the control plane, generated from control.proto:
// gateways offer tickets to schedulers, and schedulers report owners to gateways, room to each
// other, and facts to the controller.
package controlwire
