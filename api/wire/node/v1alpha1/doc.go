// Package nodewire is the wire between agents and node agents, generated from node.proto: an agent
// asks the node agent of its node for a core ticket before a call begins.
package nodewire
