package attacks

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// headroom is how many times the heap of an attack must fit into the memory that the
// chart allows: what is not heap, and what comes together with an attack, need the rest.
const headroom = 2

// peak follows the heap, garbage included, until it is stopped. The heap is that of the
// whole process: gateway and scheduler, the attackers themselves, and the worlds of other
// attacks that run meanwhile. So it bounds what gateway and scheduler have.
type peak struct {
	stop, stopped chan struct{}
	most          uint64
}

func followHeap() *peak {
	p := &peak{stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(p.stopped)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			p.most = max(p.most, heapNow())
			select {
			case <-p.stop:
				return
			case <-tick.C:
			}
		}
	}()
	return p
}

// end is the peak so far.
func (p *peak) end() uint64 {
	close(p.stop)
	<-p.stopped
	return p.most
}

func heapNow() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// withinMemory prints the heap that an attack came to, and checks that it is far below
// what gateways and schedulers may have.
func withinMemory(t *testing.T, a attack, most uint64) {
	t.Helper()
	fmt.Fprintf(os.Stdout, "attack_heap_peak_mib{%s %s}=%d\n", a.id, a.name, most>>20)
	for _, role := range []string{"gateway", "scheduler"} {
		if limit := limits()[role]; most > limit/headroom {
			t.Errorf("the heap came to %d MiB; the %s's limit is %d MiB, of which it may be half", most>>20, role, limit>>20)
		}
	}
}

// limits are the memory limits of the chart's values, in bytes.
var limits = sync.OnceValue(func() map[string]uint64 {
	text, err := os.ReadFile(filepath.Join("..", "..", "charts", "windlass", "values.yaml"))
	if err != nil {
		panic(err)
	}
	type role struct {
		Resources struct {
			Limits struct{ Memory resource.Quantity }
		}
	}
	var values struct {
		Gateway, Scheduler, Agent role
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		panic(err)
	}
	return map[string]uint64{
		"gateway": uint64(values.Gateway.Resources.Limits.Memory.Value()), "scheduler": uint64(values.Scheduler.Resources.Limits.Memory.Value()),
		"agent": uint64(values.Agent.Resources.Limits.Memory.Value()),
	}
})

// residentPeak is the most memory that a process has had, in bytes.
func residentPeak(t *testing.T, pid int) uint64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib uint64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
