package nodeagent

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

func TestModes(t *testing.T) {
	params := DefaultConfig(2).Mode
	for name, tt := range map[string]struct {
		samples string // + more threads than cores, - not
		want    string // the mode after each: B busy, c calm
	}{
		"three of four":       {"+++-", "ccBB"},
		"with a gap":          {"++-+", "cccB"},
		"never three of four": {"+-+-+-+-", "cccccccc"},
		"two in a row":        {"++--++--", "cccccccc"},
	} {
		m := mode{params: params}
		got := ""
		for i, sample := range tt.samples {
			before := m.busy
			if changed := m.observe(time.Duration(i)*params.Every, sample == '+'); changed != (m.busy != before) {
				t.Errorf("%s: after %d samples it says changed: %v", name, i+1, changed)
			}
			got += map[bool]string{true: "B", false: "c"}[m.busy]
		}
		if got != tt.want {
			t.Errorf("%s: %s became %s, want %s", name, tt.samples, got, tt.want)
		}
	}
}

func TestACalmMachineIsSampledLessOften(t *testing.T) {
	m := mode{params: DefaultConfig(2).Mode}
	m.observe(0, false)
	if m.pause() != m.params.CalmEvery {
		t.Errorf("calm, the pause is %v", m.pause())
	}
	m.observe(1, true)
	if m.pause() != m.params.Every {
		t.Errorf("after a sample above the cores, the pause is %v", m.pause())
	}
	for range m.params.Of {
		m.observe(2, false)
	}
	if m.pause() != m.params.CalmEvery {
		t.Errorf("calm again, the pause is %v", m.pause())
	}
}

func TestABusyMachineIsCalmAfterASecond(t *testing.T) {
	m := mode{params: DefaultConfig(2).Mode}
	now := time.Duration(0)
	feed := func(above bool, n int) {
		for range n {
			now += m.params.Every
			m.observe(now, above)
		}
	}
	feed(true, 10)
	feed(false, 100)
	if !m.busy {
		t.Error("calm before a second of calm has passed")
	}
	feed(false, 2)
	if m.busy {
		t.Error("busy after more than a second of calm")
	}
}

func TestTheLoadIsReadWithoutTheReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "loadavg")
	for text, want := range map[string]int{"0.20 0.18 0.12 3/80 11206\n": 2, "0 0 0 0/1 1": 0, "9.9 8.8 7.7 1200/9000 4\n": 1199} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLoadAvg(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := l.Runnable(); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
		l.Close()
	}
	for _, text := range []string{"", "1 2 3", "1 2 3 x/y"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLoadAvg(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := l.Runnable(); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
		l.Close()
	}
}

// breathSim lets low instances live as the Agent does it: samples each 5 ms while they breathe,
// and a look each 100 ms. None gets anything but by breathing.
type breathSim struct {
	*breaths
	used  map[callorder.InstanceID]time.Duration
	count map[callorder.InstanceID]int
	// pause is the longest time that an instance went without a breath.
	pause time.Duration
}

func runBreaths(params BreathParams, cores, instances int, length time.Duration, rng *rand.Rand) *breathSim {
	sim := &breathSim{newBreaths(params, cores), map[callorder.InstanceID]time.Duration{}, map[callorder.InstanceID]int{}, 0}
	last := map[callorder.InstanceID]time.Duration{}
	for id := range callorder.InstanceID(instances) {
		sim.lowered(0, id, 0)
	}
	const sample = 5 * time.Millisecond
	for now := sample; now < length; now += sample {
		for id := range callorder.InstanceID(instances) {
			if sim.breathing(id) {
				sim.used[id] += sample * time.Duration(rng.IntN(5)) / 4
			}
			sim.observe(now, id, sim.used[id])
		}
		if now%(100*time.Millisecond) == 0 {
			for _, id := range sim.letBreathe(now) {
				sim.pause = max(sim.pause, now-last[id])
				last[id] = now
				sim.count[id]++
			}
		}
	}
	return sim
}

func TestWithoutAShareNobodyBreathes(t *testing.T) {
	params := DefaultConfig(1).Breath
	params.Share = 0
	b := newBreaths(params, 1)
	b.lowered(0, 1, 0)
	if got := b.letBreathe(time.Hour); len(got) > 0 {
		t.Errorf("%v breathe", got)
	}
}

func TestBreathsTakeNoMoreThanTheirShare(t *testing.T) {
	params := DefaultConfig(1).Breath
	for _, tt := range []struct{ cores, instances int }{{1, 1}, {1, 50}, {2, 200}, {8, 30}, {16, 1000}} {
		const length = 30 * time.Second
		sim := runBreaths(params, tt.cores, tt.instances, length, rand.New(rand.NewPCG(uint64(tt.cores), 7)))
		var all time.Duration
		least, most := 1<<30, 0
		for id := range callorder.InstanceID(tt.instances) {
			all += sim.used[id]
			least, most = min(least, sim.count[id]), max(most, sim.count[id])
		}
		share := time.Duration(params.Share * float64(tt.cores) * float64(length))
		// The credit of the begin, and what is taken beyond Usage between two samples.
		if bound := share + params.Usage*time.Duration(tt.cores) + 5*time.Millisecond*time.Duration(tt.cores); all > bound {
			t.Errorf("%d instances on %d cores took %v, and %v is their share", tt.instances, tt.cores, all, bound)
		}
		if least == 0 && tt.instances <= 200 || most > least+max(2, least/4) {
			t.Errorf("%d instances on %d cores breathed between %d and %d times", tt.instances, tt.cores, least, most)
		}
		t.Logf("%d instances on %d cores: %v of %v, the longest pause was %v", tt.instances, tt.cores, all, share, sim.pause)
	}
}

func TestWhoGetsProcessorTimeNeedsNoBreath(t *testing.T) {
	params := DefaultConfig(1).Breath
	b := newBreaths(params, 1)
	b.lowered(0, 1, 0)
	for now := time.Duration(0); now < 10*time.Second; now += 100 * time.Millisecond {
		b.observe(now, 1, now/100) // 1 ms in each 100 ms
		if admitted := b.letBreathe(now); len(admitted) > 0 {
			t.Fatalf("it breathes at %v", now)
		}
	}
}

func TestABreathEndsWithTheLowBand(t *testing.T) {
	params := DefaultConfig(1).Breath
	b := newBreaths(params, 1)
	b.lowered(0, 1, 0)
	if admitted := b.letBreathe(params.Every); len(admitted) != 1 || !b.breathing(1) {
		t.Fatalf("admitted are %v", admitted)
	}
	b.lifted(1)
	if b.breathing(1) || b.credit != b.most() {
		t.Errorf("breathing: %v, the credit is %v of %v", b.breathing(1), b.credit, b.most())
	}
}
