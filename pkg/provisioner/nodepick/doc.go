// Package nodepick picks the node for an instance: at random among those with
// room (FPCSch IV-B), and says of every other node why not.
package nodepick
