package sim

import "testing"

func BenchmarkSeed(b *testing.B) {
	for i := range b.N {
		_, _ = Run(Default(uint64(i)), nil)
	}
}
