package processors

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/proctime"
)

func TestWidthFollowsWhatIsUsed(t *testing.T) {
	for _, test := range []struct {
		name string
		used []float64
		most int
		want []int
	}{
		{"idle", []float64{0, 0.1, 0.7}, 8, []int{1, 1, 1}},
		{"busy doubles at once", []float64{0.9, 1.9, 3.9, 7.9, 8}, 8, []int{2, 4, 8, 8, 8}},
		{"never more than allowed", []float64{0.9, 2, 3}, 3, []int{2, 3, 3}},
		{"enough is enough", []float64{0.9, 1.4, 1.1, 0.6}, 8, []int{2, 2, 2, 2}},
		{"fewer after ten calm looks", []float64{0.9, .4, .4, .4, .4, .4, .4, .4, .4, .4, .4}, 8, []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w Width
			for i, used := range test.used {
				if got := w.Look(used, test.most); got != test.want[i] {
					t.Errorf("look %d, which saw %.1f, gives %d, want %d", i, used, got, test.want[i])
				}
			}
			if got := w.Look(8, 1); got != 1 {
				t.Errorf("%d processors after the limit became one", got)
			}
		})
	}
}

// Whatever happened before: a program that goes on to use the same gets a number that stays, and
// that is enough and not twice too much.
func TestWidthSettlesAtConstantUse(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var w Width
		most := 1 + rng.IntN(64)
		for range rng.IntN(50) {
			w.Look(rng.Float64()*float64(w.Processors()), most)
		}
		used := rng.Float64() * float64(most)
		look := func() int { return w.Look(min(used, float64(w.Processors())), most) }
		for range 64 * calmLooks {
			look()
		}
		settled := w.Processors()
		for range 3 * calmLooks {
			if got := look(); got != settled {
				t.Fatalf("seed %d: %.2f used of at most %d: %d and then %d", seed, used, most, settled, got)
			}
		}
		if used > busy*float64(settled) && settled < most {
			t.Errorf("seed %d: %d are too few for %.2f", seed, settled, used)
		}
		if used < spare*float64(settled-1) {
			t.Errorf("seed %d: %d are too many for %.2f", seed, settled, used)
		}
	}
}

func TestAProgramHasFewProcessorsWhileItIsIdleAndAllAfterwards(t *testing.T) {
	if os.Getenv("GOMAXPROCS") != "" {
		t.Skip("GOMAXPROCS is set, so the number stays")
	}
	if _, err := proctime.CPU(os.Getpid()); err != nil {
		t.Skip("the kernel does not say what a program has used, so the number stays: ", err)
	}
	before := runtime.GOMAXPROCS(0)
	err := While(t.Context(), func(ctx context.Context) error {
		for deadline := time.Now().Add(10 * time.Second); runtime.GOMAXPROCS(0) != 1; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("%d processors", runtime.GOMAXPROCS(0))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("%d processors afterwards, %d before", got, before)
	}
}

func TestTheOperatorsNumberStays(t *testing.T) {
	t.Setenv("GOMAXPROCS", "3")
	before := runtime.GOMAXPROCS(0)
	_ = While(t.Context(), func(context.Context) error {
		if got := runtime.GOMAXPROCS(0); got != before {
			t.Errorf("%d processors, %d before", got, before)
		}
		return nil
	})
}
