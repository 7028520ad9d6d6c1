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
	// anew. Kubernetes changes limits of pods that run.
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
	before, err := proctime.CPU(os.Getpid())
	if err != nil {
		// The kernel does not say, so Go's own number is as good as any.
		return nil
	}
	defer runtime.SetDefaultGOMAXPROCS()
	var width Width
	at, most := time.Now(), runtime.GOMAXPROCS(width.Processors())
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
		used, err := proctime.CPU(os.Getpid())
		if err != nil {
			return nil
		}
		now := time.Now()
		runtime.GOMAXPROCS(width.Look(float64(used-before)/float64(now.Sub(at)), most))
		before, at = used, now
	}
}
