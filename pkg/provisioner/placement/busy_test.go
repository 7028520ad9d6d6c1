package placement

import "testing"

// Busy nodes are used only if no calm one has room, and a site is busy where only they have.
func TestBusyNodesAreUsedLast(t *testing.T) {
	core := Amount{MilliCPU: 1000}
	node := func(name string, cores int64) Node {
		return Node{Name: name, Allocatable: Amount{MilliCPU: cores * 1000}}
	}
	c := Candidates{Nodes: []Node{node("busy", 4), node("calm", 1)}, Avoided: []Node{node("avoided", 1)}}
	c.Mark(func(name string) bool { return name == "busy" })
	s := NewSite(c)
	for _, want := range []string{"calm", "avoided", "busy"} {
		if busy := s.Busy(core); busy != (want == "busy") {
			t.Errorf("before %s is picked, the site counts as busy: %v", want, busy)
		}
		got, ok := s.Pick(core, func(int) int { return 0 })
		if !ok || got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		s.Request(got, core)
	}
	s.Request("busy", Amount{MilliCPU: 3000})
	if s.Busy(core) {
		t.Error("a site without room counts as busy")
	}
}

// A tick asks for each function, and its answer is found once for all of one shape.
func TestBusyLooksAtTheNodesOnceForEachAmount(t *testing.T) {
	s := NewSite(Candidates{Nodes: []Node{{Name: "n", Allocatable: Amount{MilliCPU: 100}, Busy: true}}})
	for _, want := range []Amount{{MilliCPU: 100}, {MilliCPU: 200}} {
		s.Busy(want)
	}
	s.ordinary.nodes[0].Busy = false // unseen
	if !s.Busy(Amount{MilliCPU: 100}) || s.Busy(Amount{MilliCPU: 200}) {
		t.Error("the nodes are looked at again")
	}
	s.Request("n", Amount{MilliCPU: 10})
	if s.Busy(Amount{MilliCPU: 90}) {
		t.Error("a request leaves what was found before")
	}
}
