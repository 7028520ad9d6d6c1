package node

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// slowDivision is a division written as a list of cores, and as a sentence of the design: of the looks
// that are due, the first that may move does.
type slowDivision struct {
	p     CoreGroups
	long  []bool
	moves []time.Duration
}

func newSlowDivision(p CoreGroups) *slowDivision {
	s := &slowDivision{p: p, long: make([]bool, p.Cores)}
	for i := p.Cores - p.MinLong; i < p.Cores; i++ {
		s.long[i] = true
	}
	return s
}

func (s *slowDivision) count() (short, long int) {
	for _, l := range s.long {
		if l {
			long++
		} else {
			short++
		}
	}
	return short, long
}

func (s *slowDivision) rebalance(now time.Duration, short, long groupLoad) {
	for _, at := range s.moves {
		if now < at+s.p.Rest {
			return
		}
	}
	nShort, nLong := s.count()
	grow, shrink := false, false
	if s.p.Rule == ByUse {
		grow, shrink = long.Use-short.Use > s.p.Threshold, short.Use-long.Use > s.p.Threshold
	} else {
		// Cross-multiplied, so that nothing is divided.
		grow = float64(long.Backlog)*float64(nShort) > 2*float64(short.Backlog)*float64(nLong)
		shrink = float64(short.Backlog)*float64(nLong) > 2*float64(long.Backlog)*float64(nShort)
	}
	switch {
	case grow && nShort > s.p.MinShort:
		s.long[nShort-1] = true
	case shrink && nLong > s.p.MinLong:
		s.long[nShort] = false
	default:
		return
	}
	s.moves = append(s.moves, now)
}

func drawGroups(t *rapid.T) CoreGroups {
	p := CoreGroups{
		MinShort: rapid.IntRange(1, 4).Draw(t, "min short"), MinLong: rapid.IntRange(1, 4).Draw(t, "min long"),
		Every: 250 * time.Millisecond, Rest: time.Duration(rapid.IntRange(0, 8).Draw(t, "rest")) * 250 * time.Millisecond,
		Rule: rapid.SampledFrom([]CoreRule{ByUse, ByBacklog}).Draw(t, "rule"), Threshold: rapid.SampledFrom([]float64{0, .125, .5}).Draw(t, "threshold"),
	}
	p.Cores = p.MinShort + p.MinLong + rapid.IntRange(0, 8).Draw(t, "cores")
	return p
}

// Whatever the loads are: each core is in one group, both keep their least, a move is of one core
// and no other follows within Rest, and the groups are those of the slow twin.
func TestGroupsKeepTheirPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawGroups(t)
		g, err := newDivision(p)
		if err != nil {
			t.Fatal(err)
		}
		twin := newSlowDivision(p)
		load := func(what string) groupLoad {
			return groupLoad{
				Use:     float64(rapid.IntRange(0, 16).Draw(t, what+" use")) / 16,
				Backlog: time.Duration(rapid.IntRange(0, 1000).Draw(t, what+" backlog")) * time.Millisecond,
			}
		}
		var moves []time.Duration
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			now += p.Every
			short, long := load("short"), load("long")
			before, _ := g.cores()
			moved := g.rebalance(now, short, long)
			twin.rebalance(now, short, long)
			after, lower := g.cores()
			if moved != (before != after) || before-after > 1 || after-before > 1 {
				t.Fatalf("moved %v: the short group had %d cores and has %d", moved, before, after)
			}
			if after < p.MinShort || lower < p.MinLong || after+lower != p.Cores {
				t.Fatalf("%d and %d of %d cores", after, lower, p.Cores)
			}
			if moved {
				moves = append(moves, now)
			}
			if n := len(moves); n > 1 && moved && moves[n-1]-moves[n-2] < p.Rest {
				t.Fatalf("cores moved at %v and %v", moves[n-2], moves[n-1])
			}
			if short, long := twin.count(); short != after || long != lower {
				t.Fatalf("%d and %d cores, and by the twin %d and %d", after, lower, short, long)
			}
		}
	})
}

// Where each group has its share of the work, nothing moves; and from any division the groups
// come to one at which they stay.
func TestGroupsSettle(t *testing.T) {
	p := DefaultCoreGroups(16)
	g, err := newDivision(p)
	if err != nil {
		t.Fatal(err)
	}
	now, last := time.Duration(0), time.Duration(0)
	for range 400 {
		now += p.Every
		if g.rebalance(now, groupLoad{Backlog: 10 * time.Second}, groupLoad{Backlog: 10 * time.Second}) {
			last = now
		}
	}
	if short, long := g.cores(); long < 5 || short < 5 || last > 10*time.Second {
		t.Errorf("%d and %d cores for equal backlogs, the last move at %v; want about as many each, within 10s", short, long, last)
	}
}

func TestInvalidGroupsAreRefused(t *testing.T) {
	for what, change := range map[string]func(*CoreGroups){
		"cores":     func(p *CoreGroups) { p.Cores = 1 },
		"short":     func(p *CoreGroups) { p.MinShort = 0 },
		"long":      func(p *CoreGroups) { p.MinLong = 0 },
		"every":     func(p *CoreGroups) { p.Every = 0 },
		"rest":      func(p *CoreGroups) { p.Rest = -1 },
		"rule":      func(p *CoreGroups) { p.Rule = "luck" },
		"threshold": func(p *CoreGroups) { p.Threshold = 2 },
	} {
		p := DefaultCoreGroups(4)
		change(&p)
		if _, err := newDivision(p); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if _, err := newDivision(DefaultCoreGroups(2)); err != nil {
		t.Errorf("two cores: %v", err)
	}
}
