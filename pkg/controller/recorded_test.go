package controller

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"k8s.io/apimachinery/pkg/types"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/wiretest"
)

// What schedulers of every release told, which test/wire has recorded, is believed as it
// was meant, and so is what a later one adds.
func TestFactsOfEveryReleaseAreBelieved(t *testing.T) {
	paths, err := filepath.Glob("../../test/wire/testdata/*/watch.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d recordings, %v", len(paths), err)
	}
	for _, path := range paths {
		kind := watchReplyOf(t, filepath.Join(filepath.Dir(path), "wire.binpb"))
		b, by, observed := newFactStore(func(types.NamespacedName) {}, newPoolStore(func(string) {})), &stream{"s"}, 0
		for _, said := range recordedFacts(t, path) {
			as := dynamicpb.NewMessage(kind)
			if err := protojson.Unmarshal(said.text, as); err != nil {
				t.Fatal(err)
			}
			text, err := proto.Marshal(wiretest.Newer(as))
			if err != nil {
				t.Fatal(err)
			}
			reply := &controlwire.WatchReply{}
			if err := proto.Unmarshal(text, reply); err != nil {
				t.Fatal(err)
			}
			b.applyReply(by, reply)
			for _, want := range said.Functions {
				observed++
				want.believedBy(t, path, b)
			}
			if said.WarmPools != nil {
				said.WarmPools.believedBy(t, path, b.pools)
			}
			for _, uid := range said.Released {
				if b.entries[uid].latest.stream != nil {
					t.Errorf("%s: %s was released, and is still told of", path, uid)
				}
			}
		}
		if observed == 0 {
			t.Errorf("%s tells of no function", path)
		}
	}
}

// recordedReply is what a scheduler told.
type recordedReply struct {
	text      []byte
	Functions []recordedFunction
	Released  []string
	WarmPools *recordedPools
}

// recordedFunction has the names that the fields have in recordings.
type recordedFunction struct {
	FunctionUID               string
	Creating, Created, Queued int64
	Started, Unconfirmed      bool
	NoCapacity                string
	Problem                   *struct{ Reason string }
	Events                    []struct{ Reason string }
}

// recordedPools have the names that the fields have in recordings.
type recordedPools struct {
	Runtimes []struct {
		Name  string
		Pools []struct {
			Name           string
			Desired, Ready int64
		}
	}
}

func (want recordedPools) believedBy(t *testing.T, path string, b *poolStore) {
	t.Helper()
	for _, rt := range want.Runtimes {
		got := b.get(rt.Name)
		if got.schedulers != 1 || len(got.pools) != len(rt.Pools) {
			t.Errorf("%s: %+v is believed of %s, and %+v was told", path, got, rt.Name, rt.Pools)
		}
		for _, p := range rt.Pools {
			if believed := got.pools[p.Name]; believed != (poolFacts{desired: p.Desired, ready: p.Ready}) {
				t.Errorf("%s: %+v is believed of the pool %s, and %+v was told", path, believed, p.Name, p)
			}
		}
	}
}

func (want recordedFunction) believedBy(t *testing.T, path string, b *factStore) {
	t.Helper()
	got, happened := b.get(types.UID(want.FunctionUID))
	if got == nil {
		t.Fatalf("%s: nothing is known of %s", path, want.FunctionUID)
	}
	if got.creating != want.Creating || got.created != want.Created || got.waiting != (want.Queued > 0) ||
		got.started != want.Started || got.unconfirmed != want.Unconfirmed || got.noRoom != want.NoCapacity ||
		(got.problem.reason != "") != (want.Problem != nil) || want.Problem != nil && got.problem.reason != want.Problem.Reason {
		t.Errorf("%s: %+v is believed of %s, and %+v was told", path, *got, want.FunctionUID, want)
	}
	if len(happened) != len(want.Events) || len(happened) > 0 && happened[0].reason != want.Events[0].Reason {
		t.Errorf("%s: of %s these happened: %+v, and %+v was told", path, want.FunctionUID, happened, want.Events)
	}
}

// recordedFacts are the replies on streams of Watch.
func recordedFacts(t *testing.T, path string) (replies []recordedReply) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	watches := make(map[int]bool)
	for one := range bytes.Lines(text) {
		var line struct {
			Stream  int
			Opens   struct{ Method string }
			By      string
			Message json.RawMessage
		}
		if err := json.Unmarshal(one, &line); err != nil {
			t.Fatal(err)
		}
		if line.Opens.Method == controlwire.Scheduler_Watch_FullMethodName {
			watches[line.Stream] = true
		}
		if line.By != "server" || line.Message == nil || !watches[line.Stream] {
			continue
		}
		reply := recordedReply{text: line.Message}
		if err := json.Unmarshal(line.Message, &reply); err != nil {
			t.Fatal(err)
		}
		replies = append(replies, reply)
	}
	return replies
}

// watchReplyOf is what schedulers of a release tell, as it was then.
func watchReplyOf(t *testing.T, path string) protoreflect.MessageDescriptor {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(text, set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	found, err := files.FindDescriptorByName("windlass.control.v1alpha1.WatchReply")
	if err != nil {
		t.Fatal(err)
	}
	return found.(protoreflect.MessageDescriptor)
}
