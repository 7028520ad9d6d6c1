// Package placement picks the node for an instance: at random among those with
// room (FPCSch IV-B), and says of every other node why not. Where none has room,
// it picks the idle instance that should make some (IV-C).
package placement
