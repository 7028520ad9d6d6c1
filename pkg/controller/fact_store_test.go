package controller

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

// says is a message about the function of that UID.
func says(uid string, created uint32, events ...string) *controlwire.WatchReply {
	f := &controlwire.FunctionFacts{FunctionUid: uid, Namespace: "team", Name: "name-" + uid, Created: created}
	for _, h := range events {
		f.Events = append(f.Events, &controlwire.Event{Reason: h})
	}
	return &controlwire.WatchReply{Functions: []*controlwire.FunctionFacts{f}}
}

func TestBookBelievesWhoSpokeLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var poked []string
		b := newFactStore(func(key types.NamespacedName) { poked = append(poked, key.String()) }, newPoolStore(func(string) {}))
		one, two := &stream{"one"}, &stream{"two"}
		created := func() int64 {
			f, _ := b.get("u")
			if f == nil {
				return -1
			}
			return f.created
		}
		if created() != -1 {
			t.Fatal("an empty book knows something")
		}
		b.applyReply(one, says("u", 1))
		b.applyReply(two, says("u", 2))
		b.applyReply(one, &controlwire.WatchReply{Released: []string{"u", "unknown"}})
		b.close(one)
		time.Sleep(time.Hour)
		b.sweep()
		if created() != 2 {
			t.Errorf("created is %d, want what the second scheduler said", created())
		}

		b.applyReply(two, &controlwire.WatchReply{Released: []string{"u"}})
		time.Sleep(lostGrace - 1)
		b.sweep()
		if created() != 2 {
			t.Error("facts were forgotten before their time")
		}
		time.Sleep(time.Nanosecond)
		b.sweep()
		if created() != -1 {
			t.Error("facts that nobody tells any more are believed")
		}
		if diff := cmp.Diff([]string{"team/name-u", "team/name-u", "team/name-u"}, poked); diff != "" {
			t.Error(diff)
		}
	})
}

func TestBookKeepsFactsOverAReconnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFactStore(func(types.NamespacedName) {}, newPoolStore(func(string) {}))
		one := &stream{"one"}
		b.applyReply(one, says("u", 1))
		b.close(one)
		time.Sleep(lostGrace / 2)
		again := &stream{"one"}
		b.applyReply(again, says("u", 3))
		b.close(one)
		time.Sleep(time.Hour)
		b.sweep()
		if f, _ := b.get("u"); f == nil || f.created != 3 {
			t.Errorf("got %+v", f)
		}
	})
}

// A standby serves a unit for a moment, while its owner seems silent. What the owner has
// reported it does not report again.
func TestAReportThatEndsLeavesTheOthers(t *testing.T) {
	for name, ends := range map[string]func(*factStore, *stream){
		"released":  func(b *factStore, by *stream) { b.applyReply(by, &controlwire.WatchReply{Released: []string{"u"}}) },
		"no stream": (*factStore).close,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				woken := 0
				b := newFactStore(func(types.NamespacedName) { woken++ }, newPoolStore(func(string) {}))
				expect := func(what string, created int64, wakes int) {
					t.Helper()
					time.Sleep(lostGrace)
					b.sweep()
					switch f, _ := b.get("u"); {
					case f == nil:
						t.Errorf("%s: nothing is known", what)
					case f.created != created || woken != wakes:
						t.Errorf("%s: created is %d, want %d; woken %d times, want %d", what, f.created, created, woken, wakes)
					}
					woken = 0
				}
				owner, standby, third := &stream{"owner"}, &stream{"standby"}, &stream{"third"}
				b.applyReply(owner, says("u", 1))
				b.applyReply(standby, says("u", 2))
				b.applyReply(third, says("u", 3))
				expect("three report", 3, 3)
				ends(b, standby)
				expect("an earlier report ends", 3, 0)
				ends(b, third)
				expect("the latest report ends", 1, 1)
				b.applyReply(standby, says("u", 4))
				b.applyReply(owner, says("u", 5))
				ends(b, standby)
				expect("the owner was the last to speak", 5, 2)
				b.applyReply(standby, says("u", 5))
				ends(b, standby)
				expect("both said the same", 5, 0)
				ends(b, owner)
				time.Sleep(lostGrace)
				b.sweep()
				if f, _ := b.get("u"); f != nil {
					t.Errorf("nobody reports, and known is %+v", f)
				}
			})
		})
	}
}

// Nothing follows here from how many instances are busy, how many calls wait, or how long
// they run: a busy function would be looked at twice a second for it.
func TestNobodyIsWokenByTelemetry(t *testing.T) {
	woken := 0
	b := newFactStore(func(types.NamespacedName) { woken++ }, newPoolStore(func(string) {}))
	by := &stream{}
	say := func(change func(*controlwire.FunctionFacts)) int {
		before, observed := woken, says("u", 3)
		f := observed.GetFunctions()[0]
		f.Queued = 1
		change(f)
		b.applyReply(by, observed)
		return woken - before
	}
	if say(func(*controlwire.FunctionFacts) {}) != 1 {
		t.Error("nobody is woken by the first that is told")
	}
	if n := say(func(f *controlwire.FunctionFacts) { f.Busy, f.Queued, f.MeanExecNs, f.MeanStartNs = 2, 9, 7, 8 }); n != 0 {
		t.Errorf("woken %d times", n)
	}
	for name, change := range map[string]func(*controlwire.FunctionFacts){
		"instances":    func(f *controlwire.FunctionFacts) { f.Created = 4 },
		"an empty one": func(f *controlwire.FunctionFacts) { f.Queued = 0 },
		"a problem":    func(f *controlwire.FunctionFacts) { f.Problem = &controlwire.StartProblem{Reason: "a"} },
		"a happening":  func(f *controlwire.FunctionFacts) { f.Events = []*controlwire.Event{{Reason: "a"}} },
	} {
		if say(change) != 1 {
			t.Errorf("nobody is woken by %s", name)
		}
		say(func(*controlwire.FunctionFacts) {})
	}
	b.close(by)
	by = &stream{}
	if say(func(*controlwire.FunctionFacts) {}) != 1 {
		t.Error("nobody is woken when another scheduler tells")
	}
}

func TestFactStoreHandsOverEventsOnce(t *testing.T) {
	b := newFactStore(func(types.NamespacedName) {}, newPoolStore(func(string) {}))
	by := &stream{}
	for i := range maxEvents + 5 {
		b.applyReply(by, says("u", 0, fmt.Sprint("R", i), ""))
	}
	_, observed := b.get("u")
	if len(observed) != maxEvents || observed[0].reason != "R5" {
		t.Errorf("got %d happenings from %v", len(observed), observed[:1])
	}
	if _, observed = b.get("u"); observed != nil {
		t.Errorf("told again: %v", observed)
	}
}

func TestBookSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFactStore(func(types.NamespacedName) {}, newPoolStore(func(string) {}))
		time.Sleep(time.Hour)
		if b.settlesIn() != settleTime {
			t.Error("it is settled before this controller was the leader")
		}
		b.restart()
		if b.settlesIn() != settleTime {
			t.Error("it is settled at once")
		}
		time.Sleep(settleTime)
		if b.settlesIn() != 0 {
			t.Error("it never settles")
		}
	})
}

func TestFactsAreReadFromTheWire(t *testing.T) {
	got := factsOf(&controlwire.FunctionFacts{
		Generation: 1, Creating: 2, Created: 3, Busy: 4, Queued: 6, MeanExecNs: 7, MeanStartNs: 8,
		Problem: &controlwire.StartProblem{Reason: "a", Detail: "b"}, NoCapacity: "c",
		Unconfirmed: true, Started: true,
	})
	want := facts{1, 2, 3, true, problem{"a", "b"}, "c", true, true}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(facts{}, problem{})); diff != "" {
		t.Error(diff)
	}
}

func TestAddressesOfEndpointSlices(t *testing.T) {
	yes, no := true, false
	wire, ops := wirePort, "ops"
	nine, eight := int32(9443), int32(8081)
	ports := []discoveryv1.EndpointPort{{Name: &ops, Port: &eight}, {Name: &wire, Port: &nine}}
	got := addressesOf([]discoveryv1.EndpointSlice{
		{Ports: ports, Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Serving: &yes}},
			{Addresses: []string{"10.0.0.3"}, Conditions: discoveryv1.EndpointConditions{Serving: &no}},
			{Addresses: []string{"10.0.0.1"}},
		}},
		{Ports: ports, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}},
		{Ports: ports[:1], Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"fd00::1"}}}},
		{Ports: []discoveryv1.EndpointPort{{}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.9"}}}},
	})
	if diff := cmp.Diff([]string{"10.0.0.1:9443", "10.0.0.2:9443", "[fd00::1]:8081"}, got); diff != "" {
		t.Error(diff)
	}
}
