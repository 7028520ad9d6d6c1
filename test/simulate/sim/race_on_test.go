//go:build race

package sim

// usualSeeds is less with the race detector, which makes each ten times slower.
const usualSeeds = 400
