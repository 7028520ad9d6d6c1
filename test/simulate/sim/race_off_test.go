//go:build !race

package sim

// usualSeeds is how many seeds a unit test simulates.
const usualSeeds = 2000
