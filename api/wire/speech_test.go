package wire

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
)

func speaks(lo, hi uint32, features ...string) Speech {
	return Speech{Min: lo, Max: hi, Features: features}
}

func TestBothSpeakTheNewestProtocolThatIsCommon(t *testing.T) {
	for name, tc := range map[string]struct {
		server, client Speech
		want           uint32 // 0 if there is none
	}{
		"the same":                        {speaks(1, 1), speaks(1, 1), 1},
		"a client that says nothing":      {speaks(1, 3), speaks(0, 0), 1},
		"a client that is newer":          {speaks(1, 2), speaks(1, 4), 2},
		"a client that is older":          {speaks(2, 5), speaks(1, 3), 3},
		"a client that is too old":        {speaks(3, 5), speaks(1, 2), 0},
		"a client that is too new":        {speaks(1, 2), speaks(3, 4), 0},
		"one that says only the oldest":   {speaks(1, 4), speaks(3, 0), 3},
		"one that turns them about":       {speaks(1, 4), speaks(3, 2), 3},
		"too old, by having said nothing": {speaks(2, 4), speaks(0, 0), 0},
	} {
		agreed, ok := tc.server.Meet(tc.client)
		if agreed.Protocol != tc.want || ok != (tc.want > 0) {
			t.Errorf("%s: %d, %v, want %d", name, agreed.Protocol, ok, tc.want)
		}
	}
}

func TestOnlyFeaturesThatBothNameAreUsed(t *testing.T) {
	server, client := speaks(1, 1, "zip", "made-up"), speaks(1, 1, "made-up", "future", "made-up")
	agreed, ok := server.Meet(client)
	if want := (Agreed{Protocol: 1, Features: []string{"made-up"}}); !ok || !reflect.DeepEqual(agreed, want) {
		t.Errorf("the server has %v, want %v", agreed, want)
	}
	if !agreed.Has("made-up") || agreed.Has("zip") || agreed.Has("future") {
		t.Error("what both named is agreed on, and nothing else")
	}
	many := make([]string, MaxFeatures, MaxFeatures+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	if agreed, _ := server.Meet(Speech{Features: append(many, "zip")}); agreed.Has("zip") {
		t.Error("no more features are heeded than the limit says")
	}
}

type greeting struct {
	protocol uint32
	features []string
}

func (g greeting) GetProtocol() uint32   { return g.protocol }
func (g greeting) GetFeatures() []string { return g.features }

func TestAClientBelievesNoProtocolThatItDoesNotSpeak(t *testing.T) {
	client := speaks(2, 3, "made-up")
	for protocol, want := range map[uint32]bool{0: false, 1: false, 2: true, 3: true, 4: false} {
		if _, ok := client.Accept(greeting{protocol, nil}); ok != want {
			t.Errorf("protocol %d: %v, want %v", protocol, ok, want)
		}
	}
	if agreed, _ := client.Accept(greeting{3, []string{"made-up", "zip"}}); !agreed.Has("made-up") || agreed.Has("zip") {
		t.Error("a feature that the client does not have is not believed")
	}
	if _, ok := speaks(1, 1).Accept(greeting{}); !ok {
		t.Error("a server that says nothing speaks the first protocol")
	}
}

// The window that is spoken includes all that are kept.
func TestTheWindowIsSound(t *testing.T) {
	for _, w := range []Speech{AgentProtocols, ControlProtocols} {
		if w.Min < 1 || w.Max < w.Min || slices.ContainsFunc(w.Features, func(f string) bool { return f == "" }) {
			t.Errorf("%+v is no window", w)
		}
	}
	if KeepAgents < AgentProtocols.Min || KeepAgents > AgentProtocols.Max {
		t.Errorf("agents of %d are kept, and %d to %d are spoken", KeepAgents, AgentProtocols.Min, AgentProtocols.Max)
	}
}
