package lab

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestWeatherDoesWhatItSaysInItsShares(t *testing.T) {
	w := Netem{Delay: 10 * time.Millisecond, Jitter: 4 * time.Millisecond, Lost: 0.1, Doubled: 0.2, Hasty: 0.3, Corrupt: 0.4}
	rng := rand.New(rand.NewPCG(1, 2))
	const packets, size = 20_000, 60
	var lost, doubled, arrived, hasty, corrupt float64
	for range packets {
		flights := w.schedule(rng, size)
		switch len(flights) {
		case 0:
			lost++
		case 2:
			doubled++
		}
		for _, f := range flights {
			arrived++
			if f.delay == 0 {
				hasty++
			} else if f.delay < 6*time.Millisecond || f.delay > 14*time.Millisecond {
				t.Fatalf("a packet takes %v", f.delay)
			}
			if f.bit >= 8*size {
				t.Fatalf("bit %d of a packet of %d bytes is wrong", f.bit, size)
			} else if f.bit >= 0 {
				corrupt++
			}
		}
	}
	for what, share := range map[string][2]float64{
		"lost": {lost / packets, 0.1}, "doubled": {doubled / packets, 0.9 * 0.2},
		"hasty": {hasty / arrived, 0.3}, "corrupt": {corrupt / arrived, 0.4},
	} {
		if share[0] < share[1]-0.02 || share[0] > share[1]+0.02 {
			t.Errorf("%s: %.3f of the packets, want %.2f", what, share[0], share[1])
		}
	}
}

func TestGoodWeatherChangesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		if got := (Netem{}).schedule(rng, 60); len(got) != 1 || got[0] != (packetCopy{bit: -1}) {
			t.Fatalf("a packet arrives as %+v", got)
		}
	}
}
