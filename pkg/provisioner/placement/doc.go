// Package placement picks the node of an instance: a random one of the nodes with room (FPCSch
// IV-B). For every other node it says why the instance does not fit. If no node has room, it
// picks the idle instance to evict (IV-C).
package placement
