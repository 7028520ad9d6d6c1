package scheduler

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

// With many nodes that are all full, what is said about them does not grow with them:
// watchers go on hearing of all functions, and refusals are as short as with one node.
func TestH4WhatIsSaidAboutFullNodesDoesNotGrowWithThem(t *testing.T) {
	for _, nodes := range []int{250, 1000} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			config := defaults()
			config.node, config.nodes = 50, nodes
			inHarness(t, config, func(w *harness) {
				v, g := w.watch(), w.gateway("g:1")
				const functions = watchBatch
				for n := range functions {
					g.offer(w.put(fmt.Sprintf("a-function-with-a-name-of-some-length-%03d", n)), n)
				}
				w.after(3 * watchEvery)
				why := fmt.Sprintf("%d nodes: %d short of CPU (an instance requests 100m, a node has at most 50m free)", nodes, nodes)
				told := make(map[string]string)
				for len(v.replies) > 0 {
					reply := <-v.replies
					if size := proto.Size(reply); size >= 1<<20 {
						t.Errorf("a message has %d bytes", size)
					}
					for _, facts := range reply.GetFunctions() {
						told[facts.GetFunctionUid()] = facts.GetNoCapacity()
					}
				}
				for uid, noRoom := range told {
					if noRoom != why {
						t.Fatalf("of %s is told %q, want %q", uid, noRoom, why)
					}
				}
				if len(told) != functions {
					t.Errorf("%d functions were told of, want %d", len(told), functions)
				}
				w.after(config.NoRoomPatience)
				refused := g.refused()
				for _, r := range refused {
					if r.GetReason() != controlwire.Refusal_REASON_NO_CAPACITY || r.GetDetail() != "no node has room for an instance: "+why {
						t.Fatalf("refused with %s because %q", r.GetReason(), r.GetDetail())
					}
				}
				if len(refused) != functions {
					t.Errorf("%d were refused, want %d", len(refused), functions)
				}
			})
		})
	}
}

// A message to a watcher is bounded in bytes, whatever functions fail with.
func TestH4AMessageToAWatcherIsBoundedInBytes(t *testing.T) {
	var got []*controlwire.WatchReply
	b := batch{reply: &controlwire.WatchReply{}, send: func(r *controlwire.WatchReply) error {
		got = append(got, r)
		return nil
	}}
	var h eventRing
	for n := range 2 * maxEvents {
		h.add(unitEvent{reason: v1alpha1.ReasonStartFailed, message: fmt.Sprintf("%d %0100000d", n, 0)}, time.Unix(int64(n), 0))
	}
	happened, _ := h.since(0, time.Time{})
	const functions = 100
	for range functions {
		if err := b.addFunction(&controlwire.FunctionFacts{FunctionUid: "uid", Events: happened}); err != nil {
			t.Fatal(err)
		}
	}
	for range 100_000 {
		if err := b.addReleased("00000000-0000-0000-0000-000000000000"); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.flush(); err != nil {
		t.Fatal(err)
	}
	told, released := 0, 0
	for _, reply := range got {
		told += len(reply.GetFunctions())
		released += len(reply.GetReleased())
		if size := proto.Size(reply); size >= 1<<20 {
			t.Errorf("a message has %d bytes", size)
		}
	}
	if told != functions || released != 100_000 {
		t.Errorf("%d functions and %d releases were told of", told, released)
	}
}
