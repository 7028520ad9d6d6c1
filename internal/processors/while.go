package processors

import (
	"context"
	"os"
	"runtime"
	"time"

	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/proctime"
)

const (
	// every is the time between two looks: so long a program that becomes busy has to do with
	// what it had.
	every = 100 * time.Millisecond
	// limitLooks is after how many looks the number that the node or a CPU limit allows is read
	// again. Kubernetes changes limits of pods that run.
	limitLooks = 600
)

// While runs run, and meanwhile gives this program as many processors as it uses. There is one
// such call in a program.
func While(ctx context.Context, run func(ctx context.Context) error) error {
	if os.Getenv("GOMAXPROCS") != "" {
		return run(ctx)
	}
	following := lifecycle.New()
	following.Start("processors", follow)
	defer following.Stop()
	return run(ctx)
}

// follow looks until ctx ends.
func follow(ctx context.Context) error {
	before, err := lookAtThreads()
	if err != nil {
		// The kernel does not say, so Go's own number is as good as any.
		return nil
	}
	defer runtime.SetDefaultGOMAXPROCS()
	var width Width
	most := runtime.GOMAXPROCS(width.Processors())
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for looks := 1; ; looks++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if looks%limitLooks == 0 {
			runtime.SetDefaultGOMAXPROCS()
			most = runtime.GOMAXPROCS(0)
		}
		now, err := lookAtThreads()
		if err != nil {
			return nil
		}
		runtime.GOMAXPROCS(width.Look(now.wantedSince(before), most))
		before = now
	}
}

// threads is for how long the threads of this program had a core until a moment, and for how long
// they were ready and waited for one.
type threads struct {
	at              time.Time
	used, waitedFor time.Duration
}

func lookAtThreads() (now threads, err error) {
	if now.used, err = proctime.CPU(os.Getpid()); err != nil {
		return threads{}, err
	}
	now.waitedFor, err = proctime.Delay(os.Getpid())
	now.at = time.Now()
	return now, err
}

// wantedSince is how many cores the program has wanted since then: as many as it used, or as its
// threads waited for, if that is more. Where others compute, more threads get it a larger share. Up
// to equal parts that is no reason: it costs more for each call, while the functions that a gateway
// feeds are what it waits for.
func (t threads) wantedSince(before threads) float64 {
	return float64(max(t.used-before.used, t.waitedFor-before.waitedFor)) / float64(t.at.Sub(before.at))
}
